"""The pattern search: small tables, polished and divided rule by rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, spec_pb2
from remy_farm.v1.evaluation_pb2 import RECORDING_MEMORY, RECORDING_USES
from remy_farm.v1.evaluation_pb2 import EvaluationOutcome as Outcome
from remy_farm.v1.evaluation_pb2 import EvaluationRequest as Request
from remy_services.designer import actions, scoring
from remy_services.designer.actions import ActionSpace, first_table
from remy_services.designer.pattern.divisions import (
    PatternTable,
    TrialSplit,
    checked_steps,
    on_trial,
    trial_splits,
)
from remy_services.designer.pattern.race import Race, neighbours
from remy_services.designer.scoring import CheckpointError, by_use
from remy_services.designer.search import (
    Context,
    Decision,
    Effort,
    State,
    Step,
    StepReport,
    Strategy,
    Streams,
    Validated,
    compare,
    decide,
    validation_request,
)
from remy_services.designer.splitting import median_thresholds
from remy_simulator import RuleTable
from remy_simulator.columns import memory_summaries
from remy_simulator.messages import ActionTuple as Action
from remy_simulator.messages import action_message

# What a design fixes, and where its search stands


@dataclass(frozen=True)
class PatternContext(Context):
    """What a design fixes for all of its steps."""

    space: ActionSpace

    @property
    def search(self) -> spec_pb2.PatternSearch:
        return self.spec.search.pattern

    def round_request(
        self,
        purpose: progress_pb2.StepPurpose,
        *path: int,
        table: RuleTable,
        candidates: Sequence[evaluation_pb2.Candidate],
        race: Race,
    ) -> Request:
        """The next round of the race that `purpose` and `path` name: the unchanged table and those
        of its `candidates` that still run, on fresh specimens."""
        return self.request(
            purpose,
            *path,
            race.specimens,
            table=table,
            candidates=[
                actions.unchanged(),
                *(candidates[runner.candidate] for runner in race.runners),
            ],
            specimens=race.next_specimens(self.search),
        )


@dataclass(frozen=True, kw_only=True)
class PatternState(State):
    """The state between two steps."""

    #: The table being polished.
    current: PatternTable
    #: Steps made.
    step: int = 0
    #: The best table so far; None before the first validation.
    best: Validated | None = None
    #: How far the next compass step of each of its rules goes.
    best_steps: tuple[float, ...] = ()
    #: Rules to be polished in this epoch, the one under way first.
    queue: tuple[int, ...] = ()
    #: Races run for that rule in this epoch.
    visit_races: int = 0
    #: Races begun in this epoch; names their streams.
    races: int = 0
    #: The race under way.
    race: Race = field(default_factory=Race)
    #: What it is between, while rules are being divided on trial.
    splits: tuple[TrialSplit, ...] = ()
    #: Epochs since a rule was last divided.
    epochs_since_split: int = 0
    #: Rules that this epoch has changed, in the order of their turns.
    changed_rules: tuple[int, ...] = ()

    def after(self, outcome: Outcome) -> PatternState:
        return replace(super().after(outcome), step=self.step + 1)

    def next_epoch(self, purpose: progress_pb2.StepPurpose) -> PatternState:
        """The beginning of the next epoch, with the table as it is."""
        return replace(
            self,
            purpose=purpose,
            epoch=self.epoch + 1,
            races=0,
            changed_rules=(),
            effort=Effort(),
        )

    def to_message(self) -> checkpoint_pb2.PatternSearchState:
        return checkpoint_pb2.PatternSearchState(
            purpose=self.purpose,
            epoch=self.epoch,
            step=self.step,
            current=self.current.to_message(),
            best=self.best.to_message() if self.best else None,
            best_steps=self.best_steps,
            queue=self.queue,
            visit_races=self.visit_races,
            races=self.races,
            race=self.race.to_message(),
            splits=[split.to_message() for split in self.splits],
            epochs_since_split=self.epochs_since_split,
            changed_rules=self.changed_rules,
            evaluations=self.effort.evaluations,
            simulated_packets=self.effort.simulated_packets,
        )

    @classmethod
    def from_message(cls, message: checkpoint_pb2.PatternSearchState) -> PatternState:
        """The inverse. Raises CheckpointError for what `to_message` never writes."""
        current = PatternTable.from_message(message.current)
        best = Validated.from_message(message.best) if message.HasField("best") else None
        state = cls(
            purpose=message.purpose,
            current=current,
            step=message.step,
            epoch=message.epoch,
            best=best,
            best_steps=checked_steps(best.table, message.best_steps) if best else (),
            queue=tuple(message.queue),
            visit_races=message.visit_races,
            races=message.races,
            race=Race.from_message(message.race),
            splits=tuple(TrialSplit.from_message(s, current.table) for s in message.splits),
            epochs_since_split=message.epochs_since_split,
            changed_rules=tuple(message.changed_rules),
            effort=Effort(message.evaluations, message.simulated_packets),
        )
        if not state._is_sound():
            raise CheckpointError("the checkpoint names a step that the pattern search never makes")
        return state

    def _is_sound(self) -> bool:
        rules = self.current.table.rule_count
        runs = bool(self.race.runners)
        match self.purpose:
            case progress_pb2.STEP_PURPOSE_IMPROVE:
                can_go_on = bool(self.queue) and runs
            case progress_pb2.STEP_PURPOSE_TRY_SPLITS:
                numbers = [runner.candidate for runner in self.race.runners]
                can_go_on = runs and max(numbers) < len(self.splits)
            case _:
                can_go_on = self.purpose in PatternStrategy.steps
        begins = self.purpose == progress_pb2.STEP_PURPOSE_VALIDATE
        return (
            can_go_on
            and all(rule < rules for rule in self.queue)
            and (self.best is not None or begins)
        )


def _after_round(
    context: PatternContext,
    state: PatternState,
    purpose: progress_pb2.StepPurpose,
    request: Request,
    outcome: Outcome,
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


# A rule's turn: its races, one after another

# A rule ends its turn with steps too small to gain anything. What the others did since may have
# changed that: the next turn begins with steps this many times as long.
_REOPENED = 2.0
# No step is longer: two of them change an intersend time tenfold.
_LONGEST_STEP = 1.2
# No rule may keep the others from their turns.
_RACES_PER_VISIT = 8


def _begin_visit(context: PatternContext, state: PatternState) -> PatternState:
    """Turns to the first rule of the queue; with none left the epoch ends."""
    if not state.queue:
        return replace(state, purpose=progress_pb2.STEP_PURPOSE_VALIDATE, race=Race())
    rule = state.queue[0]
    step = min(state.current.steps[rule] * _REOPENED, context.search.first_step)
    state = replace(state, current=state.current.with_step(rule, step), visit_races=0)
    return _begin_race(context, state)


def _begin_race(context: PatternContext, state: PatternState) -> PatternState:
    """The next race for the rule whose turn it is."""
    return replace(
        state,
        purpose=progress_pb2.STEP_PURPOSE_IMPROVE,
        race=Race.between(len(_candidate_actions(context, state))),
        races=state.races + 1,
        visit_races=state.visit_races + 1,
    )


def _candidate_actions(context: PatternContext, state: PatternState) -> list[Action]:
    """What the race is between."""
    rule, current = state.queue[0], state.current
    return neighbours(context.space, current.table.action(rule), current.steps[rule])


def _after_race(
    context: PatternContext, state: PatternState, action: Action | None
) -> PatternState:
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
        return _begin_visit(context, replace(state, queue=state.queue[1:]))
    return _begin_race(context, state)


# The steps


class CountUses(Step[PatternContext, PatternState]):
    """An epoch begins: each used rule will have one turn, the most-used first. What nothing uses
    stays."""

    def request(self, context: PatternContext, state: PatternState) -> Request:
        return context.request(
            progress_pb2.STEP_PURPOSE_COUNT_USES,
            state.epoch,
            table=state.current.table,
            recording=RECORDING_USES,
        )

    def receive(
        self, context: PatternContext, state: PatternState, request: Request, outcome: Outcome
    ) -> tuple[PatternState, StepReport]:
        rules = state.current.table.rule_count
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_COUNT_USES,
            rules=rules,
            score=scoring.estimate(context.scores(request, outcome)[0]),
        )
        queue = tuple(by_use(outcome.rule_uses))
        return _begin_visit(context, replace(state, queue=queue)), report


class Polish(Step[PatternContext, PatternState]):
    """A round of the race between an action and the compass steps around it. Every round has fresh
    specimens; the winner takes the place of the present action."""

    def request(self, context: PatternContext, state: PatternState) -> Request:
        rule = state.queue[0]
        return context.round_request(
            progress_pb2.STEP_PURPOSE_IMPROVE,
            state.epoch,
            state.races,
            table=state.current.table,
            candidates=[
                actions.one_rule(rule, action) for action in _candidate_actions(context, state)
            ],
            race=state.race,
        )

    def receive(
        self, context: PatternContext, state: PatternState, request: Request, outcome: Outcome
    ) -> tuple[PatternState, StepReport]:
        state, report = _after_round(
            context, state, progress_pb2.STEP_PURPOSE_IMPROVE, request, outcome
        )
        if not state.race.is_over(context.search):
            return state, report
        winner = state.race.winner()
        if winner is None:
            return _after_race(context, state, None), report
        action = _candidate_actions(context, state)[winner.candidate]
        rule = state.queue[0]
        improved = progress_pb2.RuleImproved(
            rule=rule,
            before=action_message(state.current.table.action(rule)),
            after=action_message(action),
            gain=winner.gain,
        )
        report = replace(report, events=[progress_pb2.ProgressEvent(rule_improved=improved)])
        return _after_race(context, state, action), report


# The most-used rules are divided on trial.
_RULES_ON_TRIAL = 3


class ProposeSplits(Step[PatternContext, PatternState]):
    """Each of the most-used rules comes to trial on each signal, at the median of the memory values
    that triggered it."""

    def request(self, context: PatternContext, state: PatternState) -> Request:
        return context.request(
            progress_pb2.STEP_PURPOSE_SPLIT,
            state.epoch,
            table=state.current.table,
            recording=RECORDING_MEMORY,
        )

    def receive(
        self, context: PatternContext, state: PatternState, request: Request, outcome: Outcome
    ) -> tuple[PatternState, StepReport]:
        table = state.current.table
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_SPLIT,
            rules=table.rule_count,
            score=scoring.estimate(context.scores(request, outcome)[0]),
        )
        memory = memory_summaries(outcome)
        splits = tuple(
            split
            for rule in by_use(outcome.rule_uses)[:_RULES_ON_TRIAL]
            for split in trial_splits(
                context.space, table, rule, median_thresholds(table, rule, memory)
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


class TrySplits(Step[PatternContext, PatternState]):
    """A round of the race between divisions: the table grows by one rule, or not at all where no
    division gains more than luck would."""

    def request(self, context: PatternContext, state: PatternState) -> Request:
        table, candidates = on_trial(state.current.table, state.splits)
        return context.round_request(
            progress_pb2.STEP_PURPOSE_TRY_SPLITS,
            state.epoch,
            table=table,
            candidates=candidates,
            race=state.race,
        )

    def receive(
        self, context: PatternContext, state: PatternState, request: Request, outcome: Outcome
    ) -> tuple[PatternState, StepReport]:
        state, report = _after_round(
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


class Validate(Step[PatternContext, PatternState]):
    """Ends an epoch: a table that does not beat the best one is rolled back to it, divisions and
    all, and it may be time to divide a rule."""

    def request(self, context: PatternContext, state: PatternState) -> Request:
        return validation_request(context, state.current.table, context.search.validation_specimens)

    def receive(
        self, context: PatternContext, state: PatternState, request: Request, outcome: Outcome
    ) -> tuple[PatternState, StepReport]:
        contender = Validated.of(context, state.current.table, request, outcome)
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_VALIDATE,
            rules=contender.table.rule_count,
            score=scoring.estimate(contender.scores),
        )
        if state.best is None:
            # The first single rule: what the design's gain is measured from.
            state = _with_best(state, contender)
            return replace(state, purpose=progress_pb2.STEP_PURPOSE_COUNT_USES), report
        comparison = compare(state.best, contender)
        record = state.record(
            rules=contender.table.rule_count,
            rules_changed=len(state.changed_rules),
            comparison=comparison,
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


def _with_best(state: PatternState, best: Validated) -> PatternState:
    return replace(state, best=best, best_steps=state.current.steps)


def _grows(
    context: PatternContext, state: PatternState, comparison: progress_pb2.Comparison
) -> bool:
    search = context.search
    if state.current.table.rule_count >= search.maximum_rules:
        return False
    is_slow: bool = comparison.gain.mean < search.growth_threshold
    return is_slow or state.epochs_since_split >= search.epochs_per_split


# The strategy


class PatternStrategy(Strategy[PatternContext, PatternState]):
    """Small tables by raced compass steps."""

    field = "pattern"
    steps: ClassVar = {
        progress_pb2.STEP_PURPOSE_COUNT_USES: CountUses(),
        progress_pb2.STEP_PURPOSE_IMPROVE: Polish(),
        progress_pb2.STEP_PURPOSE_VALIDATE: Validate(),
        progress_pb2.STEP_PURPOSE_SPLIT: ProposeSplits(),
        progress_pb2.STEP_PURPOSE_TRY_SPLITS: TrySplits(),
    }

    def context(self, spec: spec_pb2.DesignSpec, given: RuleTable | None) -> PatternContext:
        return PatternContext(spec, Streams(spec), ActionSpace(spec.search.pattern))

    def first_state(self, context: PatternContext, given: RuleTable | None) -> PatternState:
        first = given or first_table(context.spec, context.space, start=0)
        steps = (context.search.first_step,) * first.rule_count
        return PatternState(
            purpose=progress_pb2.STEP_PURPOSE_VALIDATE, current=PatternTable(first, steps)
        )

    def restored(
        self, context: PatternContext, message: checkpoint_pb2.PatternSearchState
    ) -> PatternState:
        state = PatternState.from_message(message)
        if state.purpose == progress_pb2.STEP_PURPOSE_IMPROVE:
            actions = len(_candidate_actions(context, state))
            if any(runner.candidate >= actions for runner in state.race.runners):
                raise CheckpointError(
                    f"the checkpoint holds a race between more than the {actions} actions there are"
                )
        return state

    def table(self, context: PatternContext, state: PatternState) -> RuleTable:
        return state.best.table if state.best else state.current.table

    def finished(
        self, context: PatternContext, state: PatternState
    ) -> progress_pb2.StopReason | None:
        is_over = state.step >= context.search.steps
        return progress_pb2.STOP_REASON_SCHEDULE_COMPLETE if is_over else None

    def share_done(self, context: PatternContext, state: PatternState) -> float | None:
        return min(state.step / context.search.steps, 1.0)

    def closing_request(self, context: PatternContext, state: PatternState) -> Request | None:
        if state.best is None or state.current.table == state.best.table:
            return None
        return self.steps[progress_pb2.STEP_PURPOSE_VALIDATE].request(context, state)

    def closing_decision(
        self, context: PatternContext, state: PatternState, request: Request, outcome: Outcome
    ) -> Decision:
        contender = Validated.of(context, state.current.table, request, outcome)
        return decide(state.best, contender)
