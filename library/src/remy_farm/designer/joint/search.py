"""The joint search's strategy: its state, its steps, and the table that it publishes.

The search makes short climbs from several first tables, continues the best of them, and ends each
epoch with a validation. Between the steps of a climb the table is split and merged.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from remy_farm.designer.actions import ActionSpace, cycle_ms, first_table
from remy_farm.designer.joint.climb import Climb, ascend
from remy_farm.designer.joint.divisions import (
    Trials,
    cheapest_merge,
    choose_splits,
    disagreements,
    restored_trials,
    trials_of_most_used,
)
from remy_farm.designer.joint.gradient import gradient_samples, pair_samples
from remy_farm.designer.joint.schedule import Schedule, Settings, start_count
from remy_farm.designer.scoring import CheckpointError, worst_share_threshold
from remy_farm.designer.search import (
    Step,
    StepReport,
    UsageStep,
    Validate,
    Validated,
    ValidatedState,
    ValidatingStrategy,
    scalar_fields,
)
from remy_farm.designer.splitting import split_most_used, trial_table
from remy_proto.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, spec_pb2
from remy_proto.v1.evaluation_pb2 import RECORDING_SHARES, RECORDING_USED
from remy_proto.v1.evaluation_pb2 import EvaluationOutcome as Outcome
from remy_proto.v1.evaluation_pb2 import EvaluationRequest as Request
from remy_simulator import RuleTable
from remy_simulator.messages import BASIC_AXES

# A specimen may be cut into several shorter ones (`JointStrategy.parts`), with at least this many
# on/off cycles each.
_CYCLES_PER_PART = 5
_MAX_PARTS = 4


@dataclass(frozen=True, kw_only=True)
class JointState(ValidatedState):
    """The joint search's state between two steps."""

    message = checkpoint_pb2.JointSearchState

    #: The current climb.
    climb: Climb
    #: Splits to put on trial in the next step; empty unless that is its purpose.
    trials: Trials = ()
    #: Number of the current short climb, from 0; the number of short climbs once they are over.
    start: int = 0
    #: The best finished short climb; None before the first has finished and after the last has.
    best_start: Climb | None = None
    #: Validation score of `best_start`.
    best_start_score: float | None = None

    @property
    def working_table(self) -> RuleTable:
        return self.climb.table

    @property
    def rules_changed(self) -> int:
        return self.climb.table.rule_count

    def contender(self, strategy: JointStrategy) -> RuleTable:
        return self.climb.published(strategy.space)

    @classmethod
    def from_message(cls, message: checkpoint_pb2.JointSearchState) -> JointState:
        """Reads what `to_message` wrote. Raises CheckpointError for anything else."""
        has_best, has_start = message.HasField("best"), message.HasField("best_start")
        is_first = message.purpose == progress_pb2.STEP_PURPOSE_VALIDATE
        if message.purpose not in JointStrategy.steps or not (has_best or is_first):
            raise CheckpointError("the checkpoint names a step that the joint search never makes")
        if bool(message.trials) != (message.purpose == progress_pb2.STEP_PURPOSE_TRY_SPLITS):
            raise CheckpointError(
                f"the checkpoint holds {len(message.trials)} splits on trial; there must be some "
                "exactly if the next step is a trial"
            )
        if has_start != message.HasField("best_start_score"):
            raise CheckpointError(
                "the checkpoint holds only one of best_start and best_start_score; it must hold "
                "both or none"
            )
        climb = Climb.from_message(message.climb)
        return cls(
            **scalar_fields(message)
            | {
                "climb": climb,
                "trials": restored_trials(message.trials, climb.table),
                "best": Validated.from_message(message.best) if has_best else None,
                "best_start": Climb.from_message(message.best_start) if has_start else None,
                "best_start_score": message.best_start_score if has_start else None,
            }
        )


# Antithetic pairs: the coordinates of all rules are moved by a perturbation and by its opposite
#
# Both tables of a pair are simulated on the same specimen with common random numbers, so the
# difference of their scores is almost entirely due to the perturbation.

Scores = NDArray[np.float64]


class AntitheticPairs(Step["JointStrategy", JointState]):
    """A step that evaluates one antithetic pair on each of some fresh specimens."""

    def path(self, state: JointState) -> tuple[int, ...]:
        return (state.start, state.climb.steps)

    @abstractmethod
    def perturbed(self, state: JointState) -> RuleTable:
        """Returns the table that is perturbed."""

    def specimens(self, strategy: JointStrategy, settings: Settings) -> int:
        """Returns the number of specimens."""
        return settings.specimens

    def rules(self, state: JointState) -> int:
        return self.perturbed(state).rule_count

    def request(self, strategy: JointStrategy, state: JointState) -> Request:
        settings = strategy.settings(state)
        deviation = settings.perturbation
        perturbations = (
            evaluation_pb2.Perturbation(scale=scale) for scale in (deviation, -deviation)
        )
        request = strategy.request(
            self.purpose,
            *self.path(state),
            table=self.perturbed(state),
            candidates=[evaluation_pb2.Candidate(perturbation=each) for each in perturbations],
            specimens=self.specimens(strategy, settings),
            recording=RECORDING_USED,
            parts=strategy.parts,
        )
        request.bounds.CopyFrom(strategy.space.bounds)
        return request


def pair_scores(outcome: Outcome, worst_share: float = 1.0) -> tuple[Scores, Scores]:
    """Returns the scores of both tables of a pair on each specimen; NaN without a score.

    With `worst_share` below 1, scores are replaced by their terms in the mean over the worst share
    of all scores (see `scoring.cvar_terms`).
    """
    both = np.frombuffer(outcome.scores, np.float64).reshape(2, -1)
    if worst_share < 1:
        threshold = worst_share_threshold(both[~np.isnan(both)].tolist(), worst_share)
        both = threshold + np.minimum(both - threshold, 0.0) / worst_share
    up, down = both
    return up, down


def pair_means(up: Scores, down: Scores) -> list[float]:
    """Returns the mean score of each pair, without pairs that lack a score."""
    means = (up + down) / 2
    values: list[float] = means[~np.isnan(means)].tolist()
    return values


# A climb reports that it has stalled after this many steps without a significant slope.
_STALL_STEPS = 50


class Ascend(AntitheticPairs):
    """One step of the climb: updates the slopes of all rules, and moves coordinates along them."""

    purpose = progress_pb2.STEP_PURPOSE_CLIMB

    def perturbed(self, state: JointState) -> RuleTable:
        climb = state.climb
        return climb.tables_in_flight[0] if climb.tables_in_flight else climb.table

    def states_ahead(self, strategy: JointStrategy, state: JointState) -> list[JointState]:
        states: list[JointState] = []
        for table in self._in_flight(strategy, state)[1:]:
            climb = replace(state.climb, steps=state.climb.steps + 1, tables_in_flight=(table,))
            state = replace(state, climb=climb)
            if not _climb_continues(strategy, state):
                break
            states.append(state)
        return states

    def _in_flight(self, strategy: JointStrategy, state: JointState) -> tuple[RuleTable, ...]:
        """Returns the table that the next step perturbs, then those of the steps in flight."""
        table = state.climb.table
        return (*(state.climb.tables_in_flight or (table,) * strategy.schedule.steps_ahead), table)

    def receive(
        self, strategy: JointStrategy, state: JointState, request: Request, outcome: Outcome
    ) -> tuple[JointState, StepReport]:
        climb = state.climb
        in_flight = self._in_flight(strategy, state)
        up, down = pair_scores(outcome, strategy.worst_share)
        settings = strategy.settings(state)
        samples = gradient_samples(
            request,
            outcome,
            (up - down) / 2,
            climb.regions,
            rules=climb.table.rule_count,
        )
        climb = ascend(climb, samples, settings, strategy.space)
        if climb.steps >= strategy.schedule.steps:
            climb = replace(climb, completed_steps=climb.steps)
        after = replace(state, climb=climb)
        if _climb_continues(strategy, after):
            after = replace(after, climb=replace(climb, tables_in_flight=in_flight[1:]))
        events = []
        if climb.stalled_steps == _STALL_STEPS:
            stalled = progress_pb2.ClimbRested(steps=climb.stalled_steps)
            events.append(progress_pb2.ProgressEvent(climb_rested=stalled))
        report = self.report(state, pair_means(up, down), events=events)
        return replace(after, purpose=_purpose_after_step(strategy, after)), report


def _purpose_after_step(strategy: JointStrategy, state: JointState) -> progress_pb2.StepPurpose:
    """Returns the purpose after a step of the climb: merge, split, validate or climb."""
    climb, rules = state.climb, state.climb.table.rule_count
    if strategy.schedule.merge_is_due(climb.steps, rules):
        return progress_pb2.STEP_PURPOSE_MERGE
    if strategy.schedule.split_is_due(climb.steps, rules) and climb.last_split != climb.steps:
        return progress_pb2.STEP_PURPOSE_SPLIT
    return _purpose_after_split(strategy, state)


def _climb_continues(strategy: JointStrategy, state: JointState) -> bool:
    """Tells whether the climb's next step has the same table structure, whatever comes between."""
    match _purpose_after_step(strategy, state):
        case progress_pb2.STEP_PURPOSE_CLIMB:
            return True
        case progress_pb2.STEP_PURPOSE_VALIDATE:
            return not (strategy.is_over(state) or strategy.is_short_climb(state.start))
        case _:
            return False


def _with_climb(strategy: JointStrategy, state: JointState, climb: Climb) -> JointState:
    """Returns the state with a climb whose table was split or merged, and its next purpose."""
    state = replace(state, climb=climb)
    return replace(state, purpose=_purpose_after_split(strategy, state))


def _purpose_after_split(strategy: JointStrategy, state: JointState) -> progress_pb2.StepPurpose:
    """Returns the purpose if no split is due: validate or climb."""
    steps = state.climb.steps
    if strategy.is_short_climb(state.start):
        validate = steps >= min(strategy.search.start_steps, strategy.schedule.steps)
    else:
        validate = strategy.schedule.epoch_is_due(steps, state.climb.table.rule_count)
    return progress_pb2.STEP_PURPOSE_VALIDATE if validate else progress_pb2.STEP_PURPOSE_CLIMB


class SplitMostUsed(UsageStep["JointStrategy", JointState]):
    """Splits the most-used rule at the medians of its memory values (section 4.3, step 5).

    If splits are chosen by disagreement, puts the most-used rules on trial instead.
    """

    purpose = progress_pb2.STEP_PURPOSE_SPLIT
    recording = RECORDING_SHARES

    def path(self, state: JointState) -> tuple[int, ...]:
        return (state.start, state.climb.steps)

    def receive_usage(
        self, strategy: JointStrategy, state: JointState, outcome: Outcome
    ) -> tuple[JointState] | tuple[JointState, progress_pb2.ProgressEvent]:
        climb = replace(state.climb, last_split=state.climb.steps)
        if strategy.search.splits == spec_pb2.JOINT_SPLITS_DISAGREEMENT:
            if trials := trials_of_most_used(climb.table, outcome):
                purpose = progress_pb2.STEP_PURPOSE_TRY_SPLITS
                return (replace(state, climb=climb, trials=trials, purpose=purpose),)
        elif split := split_most_used(climb.table, outcome, room=strategy.room(climb)):
            climb = climb.split(split.rule, split.thresholds)
            return _with_climb(strategy, state, climb), split.event(climb.table)
        return (_with_climb(strategy, state, climb),)


class MergeRules(UsageStep["JointStrategy", JointState]):
    """Merges rules whose actions differ least.

    Rules with the same action are all merged; others only until the schedule's limit is met.
    """

    purpose = progress_pb2.STEP_PURPOSE_MERGE
    recording = RECORDING_SHARES

    def path(self, state: JointState) -> tuple[int, ...]:
        return (state.start, state.climb.steps)

    def receive_usage(
        self, strategy: JointStrategy, state: JointState, outcome: Outcome
    ) -> tuple[JointState, progress_pb2.ProgressEvent]:
        climb = state.climb
        uses: Sequence[float] = list(outcome.rule_uses)
        before = climb.table.rule_count
        limit = strategy.schedule.rules_after_merge(climb.steps, before)
        while cheapest := cheapest_merge(climb.table, climb.average, uses):
            cost, merge = cheapest
            if climb.table.rule_count <= limit and cost > 0:
                break
            climb, uses = climb.merged(merge, uses, strategy.space)
        after = climb.table.rule_count
        state = _with_climb(strategy, state, climb)
        if state.best and after <= strategy.schedule.max_rules < state.best.table.rule_count:
            # The best table so far exceeds the rule limit, so the merged one replaces it.
            state = replace(state, best=None, purpose=progress_pb2.STEP_PURPOSE_VALIDATE)
        merges = progress_pb2.RulesMerged(pairs=before - after, rules=after)
        return state, progress_pb2.ProgressEvent(rules_merged=merges)


class TrySplits(AntitheticPairs):
    """Makes those splits on trial whose sides disagree most.

    Perturbs the parts of all rules on trial at once, and compares the slopes of the two sides of
    each threshold.
    """

    purpose = progress_pb2.STEP_PURPOSE_TRY_SPLITS

    def perturbed(self, state: JointState) -> RuleTable:
        return trial_table(state.climb.table, state.trials)

    def specimens(self, strategy: JointStrategy, settings: Settings) -> int:
        return strategy.schedule.trial_specimens

    def receive(
        self, strategy: JointStrategy, state: JointState, request: Request, outcome: Outcome
    ) -> tuple[JointState, StepReport]:
        up, down = pair_scores(outcome, strategy.worst_share)
        differences = (up - down) / 2
        climb = state.climb
        samples = pair_samples(
            request,
            outcome,
            differences,
            rules=trial_table(climb.table, state.trials).rule_count,
        )
        splits = choose_splits(
            state.trials,
            disagreements(state.trials, samples),
            # As many as a split of one rule on all basic signals adds.
            new_rules=(1 << min(len(climb.table.signals), BASIC_AXES)) - 1,
            room=strategy.schedule.max_rules_at(climb.steps) - climb.table.rule_count,
        )
        events = []
        # In reverse order, because a split changes the numbers of the rules after it.
        for split in reversed(splits):
            climb = climb.split(split.rule, split.thresholds)
            events.append(split.event(climb.table))
        report = self.report(state, pair_means(up, down), events=events)
        return _with_climb(strategy, replace(state, trials=()), climb), report


class ValidateClimb(Validate["JointStrategy", JointState]):
    """Ends an epoch, or a short climb.

    The scores of a step cannot show progress: they are those of perturbed tables on a few
    specimens. The table at the average of the coordinates is therefore compared with the best table
    so far, on validation specimens that no step climbs on.
    """

    next_purpose = progress_pb2.STEP_PURPOSE_CLIMB

    def states_ahead(self, strategy: JointStrategy, state: JointState) -> list[JointState]:
        if strategy.is_short_climb(state.start) or strategy.is_over(state):
            return []
        state = replace(state, purpose=self.next_purpose)
        return [state, *strategy.steps[self.next_purpose].states_ahead(strategy, state)]

    def on_epoch_end(
        self, strategy: JointStrategy, state: JointState, record: progress_pb2.EpochRecord
    ) -> JointState:
        if not strategy.is_short_climb(state.start):
            return state
        record.start = state.start
        return _next_start(strategy, state, record.comparison)


def _next_start(
    strategy: JointStrategy, state: JointState, comparison: progress_pb2.Comparison
) -> JointState:
    """Returns the state of the next short climb; after the last one, that of the best one."""
    score = comparison.after.mean if comparison.HasField("after") else -math.inf
    if state.best_start_score is None or score > state.best_start_score:
        state = replace(state, best_start=state.climb, best_start_score=score)
    state = replace(state, start=state.start + 1)
    if strategy.is_short_climb(state.start):
        return replace(state, climb=strategy.first_climb(state.start))
    climb = state.best_start or state.climb
    return replace(state, climb=climb, best_start=None, best_start_score=None)


class JointStrategy(ValidatingStrategy[JointState]):
    """The joint search: evolution strategies on all rules at once."""

    field = "joint"
    state = JointState
    steps: ClassVar = {
        step.purpose: step
        for step in (Ascend(), SplitMostUsed(), TrySplits(), MergeRules(), ValidateClimb())
    }

    search: spec_pb2.JointSearch

    def __init__(self, spec: spec_pb2.DesignSpec, given: RuleTable | None = None) -> None:
        """With a `given` first table there is a single climb, and no short ones."""
        super().__init__(spec, given)
        self.space = ActionSpace(self.search, spec.rules)
        self.schedule = Schedule(spec.search, spec.edition)
        self.search = self.schedule.search

    def first_state(self) -> JointState:
        return JointState(purpose=progress_pb2.STEP_PURPOSE_VALIDATE, climb=self.first_climb(0))

    def finished(self, state: JointState) -> progress_pb2.StopReason | None:
        climbs = state.purpose == progress_pb2.STEP_PURPOSE_CLIMB
        is_over = climbs and self.is_over(state) and not self.is_short_climb(state.start)
        return progress_pb2.STOP_REASON_SCHEDULE_COMPLETE if is_over else None

    def is_over(self, state: JointState) -> bool:
        """Tells whether the climb has reached the end of its schedule."""
        return state.climb.steps >= self.schedule.steps

    def share_done(self, state: JointState) -> float | None:
        schedule, starts = self.schedule, self.starts
        one_start = schedule.work(min(self.search.start_steps, schedule.steps))
        before = min(state.start, starts - 1) * one_start
        whole = (starts - 1) * one_start + schedule.work(schedule.steps)
        return (before + schedule.work(state.climb.steps)) / whole

    def stalled_steps(self, state: JointState) -> int:
        return state.climb.stalled_steps if state.climb.stalled_steps >= _STALL_STEPS else 0

    def closing_request(self, state: JointState) -> Request | None:
        is_over = self.finished(state) is not None
        is_too_large = self.schedule.is_too_large(state.climb.table.rule_count)
        return None if is_over or is_too_large else super().closing_request(state)

    @cached_property
    def parts(self) -> int:
        """Number of shorter specimens that each specimen of a step is cut into.

        Five on/off cycles are enough to tell good actions from bad ones, and the same simulated
        time on more networks tells more.
        """
        part_ms = _CYCLES_PER_PART * cycle_ms(self.spec)
        whole = int(self.spec.search.simulated_seconds * 1000 / part_ms)
        return min(max(whole, 1), _MAX_PARTS)

    def settings(self, state: JointState) -> Settings:
        """Returns the settings of the climb's next step.

        If the design follows its workers, the step replaces as many scheduled steps as it needs to
        have a network for each thread.
        """
        climb = state.climb
        planned = self.schedule.settings(climb.steps, climb.completed_steps)
        steps = -(-state.worker_threads // (planned.specimens * self.parts))
        return planned.replacing(max(min(steps, self.schedule.max_replaced_steps(climb.steps)), 1))

    def room(self, climb: Climb) -> int:
        """Returns how many rules may be added to the climb's table."""
        return self.schedule.max_rules_at(climb.steps) - climb.table.rule_count

    @property
    def starts(self) -> int:
        """Number of first tables that a climb starts from."""
        return start_count(self.search) if self.given is None else 1

    def is_short_climb(self, start: int) -> bool:
        """Tells whether climb number `start` is a short one. A single climb is never short."""
        return start < self.starts > 1

    def first_climb(self, start: int) -> Climb:
        """Returns climb number `start` before its first step."""
        table = self.given or first_table(self.spec, self.space, start)
        return Climb.start(table, self.space)
