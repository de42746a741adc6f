"""The joint search as a strategy: climbing, validating, and its steps one after another."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, spec_pb2
from remy_services.designer import scoring
from remy_services.designer.actions import ActionSpace
from remy_services.designer.joint.climb import ascend
from remy_services.designer.joint.divisions import (
    chosen_splits,
    disagreements,
    most_used_on_trial,
    trial_table,
)
from remy_services.designer.joint.gradient import gradient_samples, pair_samples, spread_after
from remy_services.designer.joint.schedule import Schedule
from remy_services.designer.joint.state import (
    Context,
    JointState,
    Step,
    half_differences,
    middles,
    pair_request,
)
from remy_services.designer.splitting import split_most_used
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

# One step of the climb: antithetic perturbations of all rules on fresh specimens, and a step.


class ClimbStep:
    """One pair on each specimen informs the slopes of all rules."""

    def request(self, context: Context, state: JointState) -> evaluation_pb2.EvaluationRequest:
        climb = state.climb
        settings = context.schedule.settings(climb.steps)
        return pair_request(
            context,
            progress_pb2.STEP_PURPOSE_CLIMB,
            state.start,
            climb.steps,
            table=climb.table,
            perturbation=settings.perturbation,
            specimens=settings.specimens,
        )

    def receive(
        self,
        context: Context,
        state: JointState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[JointState, StepReport]:
        climb = state.climb
        up, down = context.scores(request, outcome)
        settings = context.schedule.settings(climb.steps)
        samples = gradient_samples(
            request,
            outcome,
            half_differences(up, down),
            climb.regions,
            climb.spread,
            settings.memories,
        )
        climb = ascend(climb, samples, settings, context.space)
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_CLIMB,
            rules=climb.table.rule_count,
            score=scoring.estimate(middles(up, down)),
        )
        return replace(state, climb=climb, purpose=after_step(context, state, climb.steps)), report


def after_step(context: Context, state: JointState, steps: int) -> progress_pb2.StepPurpose:
    """What comes once `steps` steps have been made: a split, a validation, or the next step."""
    climb = state.climb
    if climb.last_split != steps and context.schedule.split_is_due(steps, climb.table.rule_count):
        return progress_pb2.STEP_PURPOSE_SPLIT
    return after_split(context, state, steps)


def after_split(context: Context, state: JointState, steps: int) -> progress_pb2.StepPurpose:
    """The same where no split is due (any more)."""
    if context.is_trying_starts(state.start):
        validate = steps >= min(context.search.start_steps, context.schedule.steps)
    else:
        validate = context.schedule.epoch_is_due(steps)
    return progress_pb2.STEP_PURPOSE_VALIDATE if validate else progress_pb2.STEP_PURPOSE_CLIMB


# The table grows where it is used (section 4.3, step 5).


class SplitStep:
    """The most-used rule is divided at the medians of the memory values that triggered it; or, if
    disagreement is to decide, several rules come to trial there."""

    def request(self, context: Context, state: JointState) -> evaluation_pb2.EvaluationRequest:
        return context.recording_request(
            progress_pb2.STEP_PURPOSE_SPLIT,
            state.start,
            state.climb.steps,
            table=state.climb.table,
            recording=evaluation_pb2.RECORDING_MEMORY,
        )

    def receive(
        self,
        context: Context,
        state: JointState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[JointState, StepReport]:
        climb = replace(state.climb, last_split=state.climb.steps)
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_SPLIT,
            rules=climb.table.rule_count,
            score=scoring.estimate(context.scores(request, outcome)[0]),
        )
        if context.search.splits == spec_pb2.JOINT_SPLITS_DISAGREEMENT:
            trials = most_used_on_trial(climb.table, outcome.outcomes)
            if trials:
                purpose = progress_pb2.STEP_PURPOSE_TRY_SPLITS
                return replace(state, climb=climb, trials=trials, purpose=purpose), report
        elif split := split_most_used(climb.table, outcome.outcomes):
            climb = climb.split(split.rule, split.thresholds)
            report = replace(report, events=[split.event(climb.table.rule_count)])
        state = replace(state, climb=climb)
        return replace(state, purpose=after_split(context, state, climb.steps)), report


# The table grows where the two sides of a division want to differ.


class TrySplitsStep:
    """All divisions on trial are perturbed at once, and the slopes of their sides compared."""

    def request(self, context: Context, state: JointState) -> evaluation_pb2.EvaluationRequest:
        climb = state.climb
        return pair_request(
            context,
            progress_pb2.STEP_PURPOSE_TRY_SPLITS,
            state.start,
            climb.steps,
            table=trial_table(climb.table, state.trials),
            perturbation=context.schedule.settings(climb.steps).perturbation,
            specimens=context.schedule.trial_specimens,
        )

    def receive(
        self,
        context: Context,
        state: JointState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[JointState, StepReport]:
        up, down = context.scores(request, outcome)
        differences = half_differences(up, down)
        samples = pair_samples(request, outcome, differences, spread_after(differences))
        climb = state.climb
        splits = chosen_splits(
            state.trials,
            disagreements(state.trials, samples),
            # As many as the division of one rule on every signal.
            new_rules=(1 << len(climb.table.signals)) - 1,
            room=context.search.maximum_rules - climb.table.rule_count,
        )
        events = []
        # From the back, so that the numbers of the rules still to be divided stay what they are.
        for split in reversed(splits):
            climb = climb.split(split.rule, split.thresholds)
            events.append(split.event(climb.table.rule_count))
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_TRY_SPLITS,
            rules=state.climb.table.rule_count,
            score=scoring.estimate(middles(up, down)),
            events=events,
        )
        state = replace(state, climb=climb, trials=())
        return replace(state, purpose=after_split(context, state, climb.steps)), report


# Whether the climb has got anywhere, on specimens that it never climbs on.
#
# A step's own score is no answer: it belongs to perturbed tables on a handful of specimens. The
# running average of the coordinates, rounded, is compared with the best table so far on the
# validation specimens, which stay the same throughout a design and serve nothing else.


class ValidateStep:
    """Ends an epoch; while starts are being tried, ends one of them."""

    def request(self, context: Context, state: JointState) -> evaluation_pb2.EvaluationRequest:
        return publication_request(context, state)

    def receive(
        self,
        context: Context,
        state: JointState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[JointState, StepReport]:
        (scores,) = context.scores(request, outcome)
        contender = Validated(state.climb.published(context.space), tuple(scores))
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_VALIDATE,
            rules=contender.table.rule_count,
            score=scoring.estimate(scores),
        )
        climbing = replace(state, purpose=progress_pb2.STEP_PURPOSE_CLIMB)
        if state.best is None:
            # The first single rule: what the design's gain is measured from.
            return replace(climbing, best=contender), report
        comparison = compare(state.best, contender)
        if comparison.accepted:
            climbing = replace(climbing, best=contender)
        record = progress_pb2.EpochRecord(
            epoch=state.epoch,
            rules=contender.table.rule_count,
            rules_changed=contender.table.rule_count,
            comparison=comparison,
            evaluations=state.effort.evaluations,
            simulated_packets=state.effort.simulated_packets,
        )
        if context.is_trying_starts(state.start):
            record.start = state.start
            climbing = next_start(context, climbing, comparison)
        report = replace(
            report,
            score=comparison.after if comparison.HasField("after") else None,
            gain=comparison.gain if comparison.HasField("gain") else None,
            epoch=record,
        )
        return climbing.next_epoch(), report


def publication_request(context: Context, state: JointState) -> evaluation_pb2.EvaluationRequest:
    """What would be published now, on the validation specimens."""
    return validation_request(
        context,
        state.climb.published(context.space),
        specimens=context.search.validation_specimens,
    )


def next_start(
    context: Context, state: JointState, comparison: progress_pb2.Comparison
) -> JointState:
    """Keeps the climb if it is the best start so far, and turns to the next; after the last one the
    best goes on."""
    score = comparison.after.mean if comparison.HasField("after") else float("-inf")
    if state.best_start is None or score > state.best_start_score:
        state = replace(state, best_start=state.climb, best_start_score=score)
    state = replace(state, start=state.start + 1)
    if context.is_trying_starts(state.start):
        return replace(state, climb=context.first_climb(state.start))
    climb = state.best_start or state.climb
    return replace(state, climb=climb, best_start=None, best_start_score=float("-inf"))


# The joint search as a strategy: its steps, one after another.


_STEPS: dict[progress_pb2.StepPurpose, Step] = {
    progress_pb2.STEP_PURPOSE_CLIMB: ClimbStep(),
    progress_pb2.STEP_PURPOSE_SPLIT: SplitStep(),
    progress_pb2.STEP_PURPOSE_TRY_SPLITS: TrySplitsStep(),
    progress_pb2.STEP_PURPOSE_VALIDATE: ValidateStep(),
}


class JointSearch:
    """Evolution strategies on all rules at once. See `Strategy` for what the members promise."""

    def __init__(
        self,
        spec: spec_pb2.DesignSpec,
        specimen_score: scoring.SpecimenScore,
        given: RuleTable | None = None,
        state: JointState | None = None,
    ) -> None:
        search = spec.search
        self._context = Context(
            spec, specimen_score, Streams(spec), ActionSpace(search.joint), Schedule(search), given
        )
        self._state = state or JointState(
            purpose=progress_pb2.STEP_PURPOSE_VALIDATE, climb=self._context.first_climb(0)
        )

    @classmethod
    def restore(
        cls,
        spec: spec_pb2.DesignSpec,
        specimen_score: scoring.SpecimenScore,
        checkpoint: checkpoint_pb2.Checkpoint,
        given: RuleTable | None = None,
    ) -> JointSearch:
        """The search that `save` wrote. Raises CheckpointError."""
        return cls(spec, specimen_score, given, JointState.from_message(checkpoint.joint))

    def save(self, checkpoint: checkpoint_pb2.Checkpoint) -> None:
        checkpoint.joint.CopyFrom(self._state.to_message())

    @property
    def table(self) -> RuleTable:
        state = self._state
        return state.best.table if state.best else state.climb.published(self._context.space)

    @property
    def epoch(self) -> int:
        return self._state.epoch

    @property
    def finished(self) -> progress_pb2.StopReason | None:
        state = self._state
        is_over = (
            not self._context.is_trying_starts(state.start)
            and state.purpose == progress_pb2.STEP_PURPOSE_CLIMB
            and state.climb.steps >= self._context.schedule.steps
        )
        return progress_pb2.STOP_REASON_SCHEDULE_COMPLETE if is_over else None

    @property
    def share_done(self) -> float | None:
        state, schedule = self._state, self._context.schedule
        starts = self._context.starts
        one_start = schedule.work(min(self._context.search.start_steps, schedule.steps))
        before = min(state.start, starts - 1) * one_start
        whole = (starts - 1) * one_start + schedule.work(schedule.steps)
        return (before + schedule.work(state.climb.steps)) / whole

    def request(self) -> evaluation_pb2.EvaluationRequest:
        return _STEPS[self._state.purpose].request(self._context, self._state)

    def receive(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> StepReport:
        state = self._state
        step = _STEPS[state.purpose]
        state = replace(state, effort=state.effort.with_outcome(outcome))
        self._state, report = step.receive(self._context, state, request, outcome)
        return report

    def closing_request(self) -> evaluation_pb2.EvaluationRequest | None:
        state = self._state
        if state.best is None or self.finished is not None:
            return None
        published = state.climb.published(self._context.space)
        if published == state.best.table:
            return None
        return publication_request(self._context, state)

    def closing_verdict(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> Verdict:
        state = self._state
        (scores,) = self._context.scores(request, outcome)
        contender = Validated(state.climb.published(self._context.space), tuple(scores))
        return verdict(state.best or contender, contender)
