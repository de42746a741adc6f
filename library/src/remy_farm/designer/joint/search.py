"""The joint search: its state, its steps, and what is published of its climb."""

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
    chosen_splits,
    disagreements,
    least_missed,
    most_used_on_trial,
    restored_trials,
)
from remy_farm.designer.joint.gradient import (
    gradient_samples,
    pair_samples,
)
from remy_farm.designer.joint.schedule import Schedule, Settings, start_count
from remy_farm.designer.scoring import CheckpointError, best_of_worst
from remy_farm.designer.search import (
    Step,
    StepReport,
    Survey,
    Validate,
    Validated,
    ValidatedState,
    ValidatingStrategy,
    numbers,
)
from remy_farm.designer.splitting import split_most_used, trial_table
from remy_proto.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, spec_pb2
from remy_proto.v1.evaluation_pb2 import RECORDING_SHARES, RECORDING_USED
from remy_proto.v1.evaluation_pb2 import EvaluationOutcome as Outcome
from remy_proto.v1.evaluation_pb2 import EvaluationRequest as Request
from remy_simulator import RuleTable
from remy_simulator.messages import USUAL_AXES

_PERIODS = 5
_MOST_PARTS = 4


@dataclass(frozen=True, kw_only=True)
class JointState(ValidatedState):
    """The state between two steps."""

    message = checkpoint_pb2.JointSearchState

    #: The climb under way.
    climb: Climb
    #: Divisions of its rules to be tried in the next step, if that is what it is for.
    trials: Trials = ()
    #: Number of the start being tried; the number of all of them when that is over.
    start: int = 0
    #: The best of the short climbs that are over, and its score.
    best_start: Climb | None = None
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
        """The inverse. Raises CheckpointError for what `to_message` never writes."""
        has_best, has_start = message.HasField("best"), message.HasField("best_start")
        begins = message.purpose == progress_pb2.STEP_PURPOSE_VALIDATE
        if message.purpose not in JointStrategy.steps or not (has_best or begins):
            raise CheckpointError("the checkpoint names a step that the joint search never makes")
        if bool(message.trials) != (message.purpose == progress_pb2.STEP_PURPOSE_TRY_SPLITS):
            raise CheckpointError(
                "the checkpoint holds divisions on trial that no step is to try, or the reverse"
            )
        if has_start != message.HasField("best_start_score"):
            raise CheckpointError("the checkpoint holds a climb without its score, or the reverse")
        climb = Climb.from_message(message.climb)
        return cls(
            **numbers(message)
            | {
                "climb": climb,
                "trials": restored_trials(message.trials, climb.table),
                "best": Validated.from_message(message.best) if has_best else None,
                "best_start": Climb.from_message(message.best_start) if has_start else None,
                "best_start_score": message.best_start_score if has_start else None,
            }
        )


# Antithetic pairs: all rules perturbed one way and the opposite way
#
# Both of a pair run on the same specimen under the same random streams, so that nearly all of what
# differs between them is what the perturbation did (common random numbers).

Scores = NDArray[np.float64]


class AntitheticPairs(Step["JointStrategy", JointState]):
    """A step on pairs, one on each of some fresh specimens."""

    def path(self, state: JointState) -> tuple[int, ...]:
        return (state.start, state.climb.steps)

    @abstractmethod
    def perturbed(self, state: JointState) -> RuleTable:
        """The table that is perturbed."""

    def specimens(self, strategy: JointStrategy, settings: Settings) -> int:
        """On how many networks."""
        return settings.specimens

    def rules(self, state: JointState) -> int:
        return self.perturbed(state).rule_count

    def request(self, strategy: JointStrategy, state: JointState) -> Request:
        settings = strategy.settings(state)
        # The standard deviation by which the coordinates of all actions are moved.
        scale = settings.perturbation
        perturbations = (evaluation_pb2.Perturbation(scale=way) for way in (scale, -scale))
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
    """The scores of a pair on each specimen, or what they add to the mean over the worst share of
    both's; not a number where one could not be scored."""
    both = np.frombuffer(outcome.scores, np.float64).reshape(2, -1)
    if worst_share < 1:
        floor = best_of_worst(both[~np.isnan(both)].tolist(), worst_share)
        both = floor + np.minimum(both - floor, 0.0) / worst_share
    up, down = both
    return up, down


def middles(up: Scores, down: Scores) -> list[float]:
    """The mean of each pair's scores, where both could be scored."""
    means = (up + down) / 2
    values: list[float] = means[~np.isnan(means)].tolist()
    return values


# A climb whose coordinates have all rested for so many steps says so.
_RESTS = 50


class Ascend(AntitheticPairs):
    """One step of the climb: a pair on each of some fresh specimens informs the slopes of all
    rules, and coordinates move along them."""

    purpose = progress_pb2.STEP_PURPOSE_CLIMB

    def perturbed(self, state: JointState) -> RuleTable:
        climb = state.climb
        return climb.delayed[0] if climb.delayed else climb.table

    def states_ahead(self, strategy: JointStrategy, state: JointState) -> list[JointState]:
        states: list[JointState] = []
        for table in self._in_flight(strategy, state)[1:]:
            climb = replace(state.climb, steps=state.climb.steps + 1, delayed=(table,))
            state = replace(state, climb=climb)
            if not _goes_on(strategy, state):
                break
            states.append(state)
        return states

    def _in_flight(self, strategy: JointStrategy, state: JointState) -> tuple[RuleTable, ...]:
        """What the next step perturbs, and those that are asked for while it is simulated."""
        table = state.climb.table
        return (*(state.climb.delayed or (table,) * strategy.schedule.steps_ahead), table)

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
            climb = replace(climb, completed=climb.steps)
        after = replace(state, climb=climb)
        if _goes_on(strategy, after):
            # Of those steps one is less in flight, and another one begins.
            after = replace(after, climb=replace(climb, delayed=in_flight[1:]))
        events = []
        if climb.resting == _RESTS:
            rested = progress_pb2.ClimbRested(steps=climb.resting)
            events.append(progress_pb2.ProgressEvent(climb_rested=rested))
        report = self.report(state, middles(up, down), events=events)
        return replace(after, purpose=_after_step(strategy, after)), report


def _after_step(strategy: JointStrategy, state: JointState) -> progress_pb2.StepPurpose:
    """What comes after a step: a split, a validation, or the next step."""
    climb, rules = state.climb, state.climb.table.rule_count
    if strategy.schedule.merge_is_due(climb.steps, rules):
        return progress_pb2.STEP_PURPOSE_MERGE
    if strategy.schedule.split_is_due(climb.steps, rules) and climb.last_split != climb.steps:
        return progress_pb2.STEP_PURPOSE_SPLIT
    return _after_split(strategy, state)


def _goes_on(strategy: JointStrategy, state: JointState) -> bool:
    """Whether the next step of the climb is of the same table, whatever is found before it."""
    match _after_step(strategy, state):
        case progress_pb2.STEP_PURPOSE_CLIMB:
            return True
        case progress_pb2.STEP_PURPOSE_VALIDATE:
            return not (strategy.is_over(state) or strategy.is_trying_starts(state.start))
        case _:
            return False


def _gone_on(strategy: JointStrategy, state: JointState, climb: Climb) -> JointState:
    """The state where its climb has another table."""
    state = replace(state, climb=climb)
    return replace(state, purpose=_after_split(strategy, state))


def _after_split(strategy: JointStrategy, state: JointState) -> progress_pb2.StepPurpose:
    """The same where no split is due (any more)."""
    steps = state.climb.steps
    if strategy.is_trying_starts(state.start):
        validate = steps >= min(strategy.search.start_steps, strategy.schedule.steps)
    else:
        validate = strategy.schedule.epoch_is_due(steps, state.climb.table.rule_count)
    return progress_pb2.STEP_PURPOSE_VALIDATE if validate else progress_pb2.STEP_PURPOSE_CLIMB


class SplitMostUsed(Survey["JointStrategy", JointState]):
    """The table grows where it is used (section 4.3, step 5).

    The most-used rule is divided at the medians of the memory values that triggered it; or, if
    disagreement is to decide, several rules come to trial there.
    """

    purpose = progress_pb2.STEP_PURPOSE_SPLIT
    recording = RECORDING_SHARES

    def path(self, state: JointState) -> tuple[int, ...]:
        return (state.start, state.climb.steps)

    def surveyed(
        self, strategy: JointStrategy, state: JointState, outcome: Outcome
    ) -> tuple[JointState] | tuple[JointState, progress_pb2.ProgressEvent]:
        climb = replace(state.climb, last_split=state.climb.steps)
        if strategy.search.splits == spec_pb2.JOINT_SPLITS_DISAGREEMENT:
            if trials := most_used_on_trial(climb.table, outcome):
                purpose = progress_pb2.STEP_PURPOSE_TRY_SPLITS
                return (replace(state, climb=climb, trials=trials, purpose=purpose),)
        elif split := split_most_used(climb.table, outcome, room=strategy.room(climb)):
            climb = climb.split(split.rule, split.thresholds)
            return _gone_on(strategy, state, climb), split.event(climb.table)
        return (_gone_on(strategy, state, climb),)


class MergeRules(Survey["JointStrategy", JointState]):
    """The table shrinks where its rules differ least, and at least to what the schedule allows."""

    purpose = progress_pb2.STEP_PURPOSE_MERGE
    recording = RECORDING_SHARES

    def path(self, state: JointState) -> tuple[int, ...]:
        return (state.start, state.climb.steps)

    def surveyed(
        self, strategy: JointStrategy, state: JointState, outcome: Outcome
    ) -> tuple[JointState, progress_pb2.ProgressEvent]:
        climb = state.climb
        uses: Sequence[float] = list(outcome.rule_uses)
        before = climb.table.rule_count
        most = strategy.schedule.merged_to(climb.steps, before)
        while found := least_missed(climb.table, climb.average, uses):
            moved, merge = found
            if climb.table.rule_count <= most and moved > 0:
                break
            climb, uses = climb.merged(merge, uses, strategy.space)
        after = climb.table.rule_count
        state = _gone_on(strategy, state, climb)
        if state.best and after <= strategy.schedule.most_rules < state.best.table.rule_count:
            # What is published from now on is no larger than asked for.
            state = replace(state, best=None, purpose=progress_pb2.STEP_PURPOSE_VALIDATE)
        told = progress_pb2.RulesMerged(pairs=before - after, rules=after)
        return state, progress_pb2.ProgressEvent(rules_merged=told)


class TrySplits(AntitheticPairs):
    """The table grows where the two sides of a division want to differ: all divisions on trial are
    perturbed at once, and the slopes of their sides compared."""

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
        splits = chosen_splits(
            state.trials,
            disagreements(state.trials, samples),
            # As many as the division of one rule on every usual signal.
            new_rules=(1 << min(len(climb.table.signals), USUAL_AXES)) - 1,
            room=strategy.schedule.rules_at(climb.steps) - climb.table.rule_count,
        )
        events = []
        # From the back, so that the numbers of the rules still to be divided stay what they are.
        for split in reversed(splits):
            climb = climb.split(split.rule, split.thresholds)
            events.append(split.event(climb.table))
        report = self.report(state, middles(up, down), events=events)
        return _gone_on(strategy, replace(state, trials=()), climb), report


class ValidateClimb(Validate["JointStrategy", JointState]):
    """Ends an epoch; while starts are being tried, ends one of them.

    Whether the climb has got anywhere, a step's own score cannot say: it belongs to perturbed
    tables on a handful of specimens. The running average of the coordinates, rounded, is compared
    with the best table so far on the validation specimens, that it never climbs on.
    """

    then = progress_pb2.STEP_PURPOSE_CLIMB

    def states_ahead(self, strategy: JointStrategy, state: JointState) -> list[JointState]:
        if strategy.is_trying_starts(state.start) or strategy.is_over(state):
            return []
        state = replace(state, purpose=self.then)
        return [state, *strategy.steps[self.then].states_ahead(strategy, state)]

    def epoch_ended(
        self, strategy: JointStrategy, state: JointState, record: progress_pb2.EpochRecord
    ) -> JointState:
        if not strategy.is_trying_starts(state.start):
            return state
        record.start = state.start
        return _next_start(strategy, state, record.comparison)


def _next_start(
    strategy: JointStrategy, state: JointState, comparison: progress_pb2.Comparison
) -> JointState:
    """Keeps the climb if it is the best start so far, and turns to the next; after the last one the
    best goes on."""
    score = comparison.after.mean if comparison.HasField("after") else -math.inf
    if state.best_start_score is None or score > state.best_start_score:
        state = replace(state, best_start=state.climb, best_start_score=score)
    state = replace(state, start=state.start + 1)
    if strategy.is_trying_starts(state.start):
        return replace(state, climb=strategy.first_climb(state.start))
    climb = state.best_start or state.climb
    return replace(state, climb=climb, best_start=None, best_start_score=None)


class JointStrategy(ValidatingStrategy[JointState]):
    """Evolution strategies on all rules at once."""

    field = "joint"
    state = JointState
    steps: ClassVar = {
        step.purpose: step
        for step in (Ascend(), SplitMostUsed(), TrySplits(), MergeRules(), ValidateClimb())
    }

    search: spec_pb2.JointSearch

    def __init__(self, spec: spec_pb2.DesignSpec, given: RuleTable | None = None) -> None:
        """A table that is given begins the only climb, in place of the starts."""
        super().__init__(spec, given)
        self.space = ActionSpace(self.search, spec.rules)
        self.schedule = Schedule(spec.search, spec.edition)
        # As they are followed.
        self.search = self.schedule.search

    def first_state(self) -> JointState:
        return JointState(purpose=progress_pb2.STEP_PURPOSE_VALIDATE, climb=self.first_climb(0))

    def finished(self, state: JointState) -> progress_pb2.StopReason | None:
        climbs = state.purpose == progress_pb2.STEP_PURPOSE_CLIMB
        is_over = climbs and self.is_over(state) and not self.is_trying_starts(state.start)
        return progress_pb2.STOP_REASON_SCHEDULE_COMPLETE if is_over else None

    def is_over(self, state: JointState) -> bool:
        """Whether the climb has come to the end of its schedule."""
        return state.climb.steps >= self.schedule.steps

    def share_done(self, state: JointState) -> float | None:
        schedule, starts = self.schedule, self.starts
        one_start = schedule.work(min(self.search.start_steps, schedule.steps))
        before = min(state.start, starts - 1) * one_start
        whole = (starts - 1) * one_start + schedule.work(schedule.steps)
        return (before + schedule.work(state.climb.steps)) / whole

    def resting_steps(self, state: JointState) -> int:
        return state.climb.resting if state.climb.resting >= _RESTS else 0

    def closing_request(self, state: JointState) -> Request | None:
        is_over = self.finished(state) is not None
        is_too_large = self.schedule.is_too_large(state.climb.table.rule_count)
        return None if is_over or is_too_large else super().closing_request(state)

    @cached_property
    def parts(self) -> int:
        """Into how many specimens each of a step is cut: five on and off periods tell a sender from
        another, and more networks tell more than more of them."""
        enough_ms = _PERIODS * cycle_ms(self.spec)
        whole = int(self.spec.search.simulated_seconds * 1000 / enough_ms)
        return min(max(whole, 1), _MOST_PARTS)

    def settings(self, state: JointState) -> Settings:
        """What the climb's next step works with: a network for each thread that there is, if it
        follows them."""
        climb = state.climb
        usual = self.schedule.settings(climb.steps, climb.completed)
        wanted = -(-state.worker_threads // (usual.specimens * self.parts))
        return usual.widened(max(min(wanted, self.schedule.widest(climb.steps)), 1))

    def room(self, climb: Climb) -> int:
        """By how many rules the climb's table may grow."""
        return self.schedule.rules_at(climb.steps) - climb.table.rule_count

    @property
    def starts(self) -> int:
        """How many climbs are begun."""
        return start_count(self.search) if self.given is None else 1

    def is_trying_starts(self, start: int) -> bool:
        """Whether start number `start` is one of the short climbs. A single one has no rival, and
        simply goes on."""
        return start < self.starts > 1

    def first_climb(self, start: int) -> Climb:
        """The climb of start number `start` before its first step."""
        table = self.given or first_table(self.spec, self.space, start)
        return Climb.start(table, self.space)
