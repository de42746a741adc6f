"""The pattern search as a strategy: small tables, polished and divided rule by rule."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, spec_pb2
from remy_services.designer import actions, scoring
from remy_services.designer.actions import ActionSpace, first_table
from remy_services.designer.pattern.race import Race, neighbours
from remy_services.designer.pattern.state import (
    Context,
    PatternState,
    PatternTable,
    Step,
    on_trial,
    trial_splits,
)
from remy_services.designer.scoring import CheckpointError, by_use, total_uses
from remy_services.designer.splitting import median_thresholds
from remy_services.designer.strategy import (
    StepReport,
    Streams,
    Validated,
    Verdict,
    compare,
    validation_request,
    verdict,
)
from remy_simulator import RuleTable
from remy_simulator.messages import ActionTuple as Action
from remy_simulator.messages import action_message

# What every round of a race does.


def after_round(
    context: Context,
    state: PatternState,
    purpose: progress_pb2.StepPurpose,
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
) -> tuple[PatternState, StepReport]:
    """The state with the round run, and a report with the leader's gain so far."""
    scores = context.scores(request, outcome)
    race = state.race.after_round(scores)
    leader = race.leader()
    report = StepReport(
        purpose=purpose,
        rules=state.current.table.rule_count,
        score=scoring.estimate(scores[0]),
        gain=leader.gain if leader is not None else None,
    )
    return replace(state, race=race), report


# A rule's turn: its races, one after another.


# A rule ends its turn with steps too small to gain anything. What the others did since may have
# changed that: the next turn begins with steps this many times as long.
_REOPENED = 2.0
# No step is longer: two of them change an intersend time tenfold.
_LONGEST_STEP = 1.2
# No rule may keep the others from their turns.
_RACES_PER_VISIT = 8


def begin_visit(context: Context, state: PatternState) -> PatternState:
    """Turns to the first rule of the queue; with none left the epoch ends."""
    if not state.queue:
        return replace(state, purpose=progress_pb2.STEP_PURPOSE_VALIDATE, race=Race())
    rule = state.queue[0]
    step = min(state.current.steps[rule] * _REOPENED, context.search.first_step)
    state = replace(state, current=state.current.with_step(rule, step), visit_races=0)
    return begin_race(context, state)


def begin_race(context: Context, state: PatternState) -> PatternState:
    """The next race for the rule whose turn it is."""
    return replace(
        state,
        purpose=progress_pb2.STEP_PURPOSE_IMPROVE,
        race=Race.between(len(candidate_actions(context, state))),
        races=state.races + 1,
        visit_races=state.visit_races + 1,
    )


def candidate_actions(context: Context, state: PatternState) -> list[Action]:
    """What the race is between."""
    rule, current = state.queue[0], state.current
    return neighbours(context.space, current.table.action(rule), current.steps[rule])


def after_race(context: Context, state: PatternState, action: Action | None) -> PatternState:
    """Takes over the winner's action, if any, and goes on: with longer steps after a success, with
    shorter ones after a failure, until they are too short."""
    rule, current = state.queue[0], state.current
    if action is None:
        current = current.with_step(rule, current.steps[rule] / 2)
    else:
        current = current.with_action(rule, action)
        current = current.with_step(rule, min(current.steps[rule] * 2, _LONGEST_STEP))
        changed = state.changed_rules
        if rule not in changed:
            state = replace(state, changed_rules=(*changed, rule))
    state = replace(state, current=current)
    is_done = current.steps[rule] < context.search.minimum_step
    if is_done or state.visit_races >= _RACES_PER_VISIT:
        return begin_visit(context, replace(state, queue=state.queue[1:]))
    return begin_race(context, state)


# An epoch begins: which rules are used, and in which order they will be polished.


class CountUsesStep:
    """Each used rule has one turn an epoch, the most-used first. What nothing uses stays."""

    def request(self, context: Context, state: PatternState) -> evaluation_pb2.EvaluationRequest:
        return context.recording_request(
            progress_pb2.STEP_PURPOSE_COUNT_USES,
            state.epoch,
            table=state.current.table,
            recording=evaluation_pb2.RECORDING_USES,
        )

    def receive(
        self,
        context: Context,
        state: PatternState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PatternState, StepReport]:
        rules = state.current.table.rule_count
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_COUNT_USES,
            rules=rules,
            score=scoring.estimate(context.scores(request, outcome)[0]),
        )
        queue = tuple(by_use(total_uses(outcome.outcomes, rules)))
        return begin_visit(context, replace(state, queue=queue)), report


# A round of the race between an action and the compass steps around it.


class PolishStep:
    """Every round has fresh specimens; the winner takes the place of the present action."""

    def request(self, context: Context, state: PatternState) -> evaluation_pb2.EvaluationRequest:
        rule = state.queue[0]
        return context.round_request(
            progress_pb2.STEP_PURPOSE_IMPROVE,
            state.epoch,
            state.races,
            table=state.current.table,
            candidates=[
                actions.one_rule(rule, action) for action in candidate_actions(context, state)
            ],
            race=state.race,
        )

    def receive(
        self,
        context: Context,
        state: PatternState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PatternState, StepReport]:
        state, report = after_round(
            context, state, progress_pb2.STEP_PURPOSE_IMPROVE, request, outcome
        )
        if not state.race.is_over(context.search):
            return state, report
        winner = state.race.winner()
        if winner is None:
            return after_race(context, state, None), report
        action = candidate_actions(context, state)[winner.candidate]
        rule = state.queue[0]
        improved = progress_pb2.RuleImproved(
            rule=rule,
            before=action_message(state.current.table.action(rule)),
            after=action_message(action),
            gain=winner.gain,
        )
        report = replace(report, events=[progress_pb2.ProgressEvent(rule_improved=improved)])
        return after_race(context, state, action), report


# Where rules might be divided: at the medians of the memory values that triggered them.


# The most-used rules are divided on trial.
_RULES_ON_TRIAL = 3


class SplitStep:
    """Each of the most-used rules comes to trial on each signal."""

    def request(self, context: Context, state: PatternState) -> evaluation_pb2.EvaluationRequest:
        return context.recording_request(
            progress_pb2.STEP_PURPOSE_SPLIT,
            state.epoch,
            table=state.current.table,
            recording=evaluation_pb2.RECORDING_MEMORY,
        )

    def receive(
        self,
        context: Context,
        state: PatternState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PatternState, StepReport]:
        table = state.current.table
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_SPLIT,
            rules=table.rule_count,
            score=scoring.estimate(context.scores(request, outcome)[0]),
        )
        used = by_use(total_uses(outcome.outcomes, table.rule_count))
        splits = tuple(
            split
            for rule in used[:_RULES_ON_TRIAL]
            for split in trial_splits(
                context.space, table, rule, median_thresholds(table, rule, outcome.outcomes)
            )
        )
        if not splits:
            return replace(state, purpose=progress_pb2.STEP_PURPOSE_COUNT_USES), report
        state = replace(
            state,
            purpose=progress_pb2.STEP_PURPOSE_TRY_SPLITS,
            splits=splits,
            race=Race.between(len(splits)),
        )
        return state, report


# A round of the race between divisions; the one that gains most is made.


class TrySplitsStep:
    """The table grows by one rule, or not at all where no division gains more than luck would."""

    def request(self, context: Context, state: PatternState) -> evaluation_pb2.EvaluationRequest:
        table, candidates = on_trial(state.current.table, state.splits)
        return context.round_request(
            progress_pb2.STEP_PURPOSE_TRY_SPLITS,
            state.epoch,
            table=table,
            candidates=candidates,
            race=state.race,
        )

    def receive(
        self,
        context: Context,
        state: PatternState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PatternState, StepReport]:
        state, report = after_round(
            context, state, progress_pb2.STEP_PURPOSE_TRY_SPLITS, request, outcome
        )
        if not state.race.is_over(context.search):
            return state, report
        winner = state.race.leader()
        if winner is not None and winner.has_gained(0.0):
            trial = state.splits[winner.candidate]
            current = trial.applied(state.current, context.search.first_step)
            state = replace(state, current=current, epochs_since_split=0)
            report = replace(report, events=[trial.split.event(current.table.rule_count)])
        state = replace(state, purpose=progress_pb2.STEP_PURPOSE_COUNT_USES, splits=(), race=Race())
        return state, report


# The end of an epoch: whether its table replaces the best one, and whether a rule is divided.


class ValidateStep:
    """A table that does not beat the best one is rolled back to it, divisions and all."""

    def request(self, context: Context, state: PatternState) -> evaluation_pb2.EvaluationRequest:
        return current_request(context, state)

    def receive(
        self,
        context: Context,
        state: PatternState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PatternState, StepReport]:
        (scores,) = context.scores(request, outcome)
        contender = Validated(state.current.table, tuple(scores))
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_VALIDATE,
            rules=contender.table.rule_count,
            score=scoring.estimate(scores),
        )
        if state.best is None:
            # The first single rule: what the design's gain is measured from.
            state = _with_best(state, contender)
            return replace(state, purpose=progress_pb2.STEP_PURPOSE_COUNT_USES), report
        comparison = compare(state.best, contender)
        record = progress_pb2.EpochRecord(
            epoch=state.epoch,
            rules=contender.table.rule_count,
            rules_changed=len(state.changed_rules),
            comparison=comparison,
            evaluations=state.effort.evaluations,
            simulated_packets=state.effort.simulated_packets,
        )
        best = PatternTable(state.best.table, state.best_steps)
        if comparison.accepted:
            state = _with_best(state, contender)
        else:
            state = replace(state, current=best)
        state = replace(state, epochs_since_split=state.epochs_since_split + 1)
        grows = _grows(context, state, comparison)
        purpose = progress_pb2.STEP_PURPOSE_SPLIT if grows else progress_pb2.STEP_PURPOSE_COUNT_USES
        report = replace(
            report,
            gain=comparison.gain if comparison.HasField("gain") else None,
            epoch=record,
        )
        return state.next_epoch(purpose), report


def current_request(context: Context, state: PatternState) -> evaluation_pb2.EvaluationRequest:
    """The table being polished, on the validation specimens."""
    specimens = context.search.validation_specimens
    return validation_request(context, state.current.table, specimens)


def _with_best(state: PatternState, best: Validated) -> PatternState:
    return replace(state, best=best, best_steps=state.current.steps)


def _grows(context: Context, state: PatternState, comparison: progress_pb2.Comparison) -> bool:
    search = context.search
    if state.current.table.rule_count >= search.maximum_rules:
        return False
    is_slow: bool = comparison.gain.mean < search.growth_threshold
    return is_slow or state.epochs_since_split >= search.epochs_per_split


# The pattern search as a strategy: its steps, one after another.


_STEPS: dict[progress_pb2.StepPurpose, Step] = {
    progress_pb2.STEP_PURPOSE_COUNT_USES: CountUsesStep(),
    progress_pb2.STEP_PURPOSE_IMPROVE: PolishStep(),
    progress_pb2.STEP_PURPOSE_VALIDATE: ValidateStep(),
    progress_pb2.STEP_PURPOSE_SPLIT: SplitStep(),
    progress_pb2.STEP_PURPOSE_TRY_SPLITS: TrySplitsStep(),
}


class PatternSearch:
    """Small tables by raced compass steps. See `Strategy` for what the members promise."""

    def __init__(
        self,
        spec: spec_pb2.DesignSpec,
        specimen_score: scoring.SpecimenScore,
        given: RuleTable | None = None,
        state: PatternState | None = None,
    ) -> None:
        search = spec.search.pattern
        space = ActionSpace(search)
        self._context = Context(spec, specimen_score, Streams(spec), space)
        first = given or first_table(spec, space, start=0)
        self._state = state or PatternState(
            purpose=progress_pb2.STEP_PURPOSE_VALIDATE,
            current=PatternTable(first, (search.first_step,) * first.rule_count),
        )

    @classmethod
    def restore(
        cls,
        spec: spec_pb2.DesignSpec,
        specimen_score: scoring.SpecimenScore,
        checkpoint: checkpoint_pb2.Checkpoint,
        given: RuleTable | None = None,
    ) -> PatternSearch:
        """The search that `save` wrote. Raises CheckpointError."""
        search = cls(spec, specimen_score, given, PatternState.from_message(checkpoint.pattern))
        state = search._state
        if state.purpose == progress_pb2.STEP_PURPOSE_IMPROVE:
            actions = len(candidate_actions(search._context, state))
            if any(runner.candidate >= actions for runner in state.race.runners):
                raise CheckpointError(
                    f"the checkpoint holds a race between more than the {actions} actions there are"
                )
        return search

    def save(self, checkpoint: checkpoint_pb2.Checkpoint) -> None:
        checkpoint.pattern.CopyFrom(self._state.to_message())

    @property
    def table(self) -> RuleTable:
        state = self._state
        return state.best.table if state.best else state.current.table

    @property
    def epoch(self) -> int:
        return self._state.epoch

    @property
    def finished(self) -> progress_pb2.StopReason | None:
        is_over = self._state.step >= self._context.search.steps
        return progress_pb2.STOP_REASON_SCHEDULE_COMPLETE if is_over else None

    @property
    def share_done(self) -> float | None:
        return min(self._state.step / self._context.search.steps, 1.0)

    def request(self) -> evaluation_pb2.EvaluationRequest:
        return _STEPS[self._state.purpose].request(self._context, self._state)

    def receive(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> StepReport:
        state = self._state
        step = _STEPS[state.purpose]
        state = replace(state, step=state.step + 1, effort=state.effort.with_outcome(outcome))
        self._state, report = step.receive(self._context, state, request, outcome)
        return report

    def closing_request(self) -> evaluation_pb2.EvaluationRequest | None:
        state = self._state
        if state.best is None or state.current.table == state.best.table:
            return None
        return current_request(self._context, state)

    def closing_verdict(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> Verdict:
        state = self._state
        (scores,) = self._context.scores(request, outcome)
        contender = Validated(state.current.table, tuple(scores))
        return verdict(state.best or contender, contender)
