"""The pattern search's strategy: its state and its steps.

In each epoch every used rule has a turn. During a turn, compass steps from the rule's action
compete with it in races. An epoch ends with a validation; now and then splits are put on trial in a
race.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import ClassVar

from remy_farm.designer import actions
from remy_farm.designer.actions import ActionSpace, first_table
from remy_farm.designer.pattern.divisions import (
    PatternTable,
    TrialSplit,
    checked_step_sizes,
    on_trial,
    trial_splits,
)
from remy_farm.designer.pattern.race import Race, neighbours
from remy_farm.designer.scoring import CheckpointError, rules_by_use
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
from remy_farm.designer.splitting import median_thresholds
from remy_proto.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, spec_pb2
from remy_proto.v1.evaluation_pb2 import RECORDING_SHARES, RECORDING_USES
from remy_proto.v1.evaluation_pb2 import EvaluationOutcome as Outcome
from remy_proto.v1.evaluation_pb2 import EvaluationRequest as Request
from remy_simulator import RuleTable
from remy_simulator.columns import memory_summaries
from remy_simulator.messages import Action, action_message


@dataclass(frozen=True, kw_only=True)
class PatternState(ValidatedState):
    """The pattern search's state between two steps."""

    message = checkpoint_pb2.PatternSearchState

    #: The table being improved.
    current: PatternTable
    #: Steps made.
    step: int = 0
    #: Length of the next compass step of each rule of the best table.
    best_steps: tuple[float, ...] = ()
    #: Rules still to be improved in this epoch, starting with the current one.
    queue: tuple[int, ...] = ()
    #: Races of the current rule in this epoch.
    visit_races: int = 0
    #: Races started in this epoch. The number names their random streams.
    races: int = 0
    #: The current race.
    race: Race = field(default_factory=Race)
    #: Candidates of the current race if it is between splits on trial.
    splits: tuple[TrialSplit, ...] = ()
    #: Epochs since the last split.
    epochs_since_split: int = 0
    #: Rules whose action this epoch has changed, in the order of the changes.
    changed_rules: tuple[int, ...] = ()

    @property
    def working_table(self) -> RuleTable:
        return self.current.table

    @property
    def rules_changed(self) -> int:
        return len(self.changed_rules)

    def contender(self, strategy: PatternStrategy) -> RuleTable:
        return self.current.table

    def with_best(self, best: Validated) -> PatternState:
        return replace(self, best=best, best_steps=self.current.steps)

    def count(self, outcome: Outcome) -> PatternState:
        return replace(super().count(outcome), step=self.step + 1)

    @classmethod
    def from_message(cls, message: checkpoint_pb2.PatternSearchState) -> PatternState:
        """Reads what `to_message` wrote. Raises CheckpointError for anything else."""
        current = PatternTable.from_message(message.current)
        best = Validated.from_message(message.best) if message.HasField("best") else None
        state = cls(
            **scalar_fields(message)
            | {
                "current": current,
                "best": best,
                "best_steps": checked_step_sizes(best.table, message.best_steps) if best else (),
                "race": Race.from_message(message.race),
                "splits": tuple(TrialSplit.from_message(s, current.table) for s in message.splits),
            }
        )
        if not state._is_sound():
            raise CheckpointError("the checkpoint names a step that the pattern search never makes")
        return state

    def _is_sound(self) -> bool:
        rules = self.current.table.rule_count
        runs = bool(self.race.candidates)
        match self.purpose:
            case progress_pb2.STEP_PURPOSE_IMPROVE:
                is_possible = bool(self.queue) and runs
            case progress_pb2.STEP_PURPOSE_TRY_SPLITS:
                numbers = [candidate.number for candidate in self.race.candidates]
                is_possible = runs and max(numbers) < len(self.splits)
            case _:
                is_possible = self.purpose in PatternStrategy.steps
        is_first = self.purpose == progress_pb2.STEP_PURPOSE_VALIDATE
        return (
            is_possible
            and all(rule < rules for rule in self.queue)
            and (self.best is not None or is_first)
        )


# The turn of a rule, which consists of races

# A rule's turn ends when its steps are too short to gain. Since then other rules may have changed,
# so its next turn starts with longer steps, by this factor.
_REOPENED = 2.0
# Maximum length of a step, in coordinates; two such steps change an intersend time tenfold.
_LONGEST_STEP = 1.2
# Maximum number of races in a turn, so that every rule gets its turn.
_RACES_PER_VISIT = 8


def _start_visit(strategy: PatternStrategy, state: PatternState) -> PatternState:
    """Starts the turn of the first rule in the queue; ends the epoch if the queue is empty."""
    if not state.queue:
        return replace(state, purpose=progress_pb2.STEP_PURPOSE_VALIDATE, race=Race())
    rule = state.queue[0]
    step = min(state.current.steps[rule] * _REOPENED, strategy.search.first_step)
    state = replace(state, current=state.current.with_step(rule, step), visit_races=0)
    return _start_race(strategy, state)


def _start_race(strategy: PatternStrategy, state: PatternState) -> PatternState:
    """Starts the next race of the current rule."""
    return replace(
        state,
        purpose=progress_pb2.STEP_PURPOSE_IMPROVE,
        race=Race.of(len(_candidate_actions(strategy, state))),
        races=state.races + 1,
        visit_races=state.visit_races + 1,
    )


def _candidate_actions(strategy: PatternStrategy, state: PatternState) -> list[Action]:
    """Returns the candidates of the race: the compass steps of the current rule."""
    rule, current = state.queue[0], state.current
    return neighbours(strategy.space, current.table.action(rule), current.steps[rule])


def _after_race(
    strategy: PatternStrategy, state: PatternState, action: Action | None
) -> PatternState:
    """Adopts the winner's action, if there is one, and starts the next race or turn.

    Steps become twice as long after a success and half as long after a failure. The turn ends when
    they are too short.
    """
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
    is_done = current.steps[rule] < strategy.search.minimum_step
    if is_done or state.visit_races >= _RACES_PER_VISIT:
        return _start_visit(strategy, replace(state, queue=state.queue[1:]))
    return _start_race(strategy, state)


class CountUses(UsageStep["PatternStrategy", PatternState]):
    """Starts an epoch: queues all used rules, the most-used first."""

    purpose = progress_pb2.STEP_PURPOSE_COUNT_USES
    recording = RECORDING_USES

    def receive_usage(
        self, strategy: PatternStrategy, state: PatternState, outcome: Outcome
    ) -> tuple[PatternState]:
        queue = tuple(rules_by_use(outcome.rule_uses))
        return (_start_visit(strategy, replace(state, queue=queue)),)


class RaceRound(Step["PatternStrategy", PatternState]):
    """One round of the current race: the unchanged table and the remaining candidates."""

    @abstractmethod
    def candidates(
        self, strategy: PatternStrategy, state: PatternState
    ) -> tuple[RuleTable, list[evaluation_pb2.Candidate]]:
        """Returns the table, and all candidates that the race started with."""

    @abstractmethod
    def race_over(
        self, strategy: PatternStrategy, state: PatternState
    ) -> tuple[PatternState] | tuple[PatternState, progress_pb2.ProgressEvent]:
        """Returns the state after the race, and an event if there is a winner."""

    def request(self, strategy: PatternStrategy, state: PatternState) -> Request:
        table, candidates = self.candidates(strategy, state)
        race = state.race
        return strategy.request(
            self.purpose,
            *self.path(state),
            race.specimens,
            table=table,
            candidates=[actions.unchanged(), *(candidates[one.number] for one in race.candidates)],
            specimens=race.next_specimens(strategy.search),
        )

    def receive(
        self, strategy: PatternStrategy, state: PatternState, request: Request, outcome: Outcome
    ) -> tuple[PatternState, StepReport]:
        scores = strategy.scores(request, outcome)
        after = replace(state, race=state.race.after_round(scores))
        leader = after.race.leader()
        events: list[progress_pb2.ProgressEvent] = []
        if after.race.is_over(strategy.search):
            after, *events = self.race_over(strategy, after)
        gain = None if leader is None else leader.gain
        return after, self.report(state, scores[0], gain=gain, events=events)


class Polish(RaceRound):
    """A round of a race between the compass steps around a rule's action.

    The winner replaces the action.
    """

    purpose = progress_pb2.STEP_PURPOSE_IMPROVE

    def path(self, state: PatternState) -> tuple[int, ...]:
        return (state.epoch, state.races)

    def candidates(
        self, strategy: PatternStrategy, state: PatternState
    ) -> tuple[RuleTable, list[evaluation_pb2.Candidate]]:
        rule, candidates = state.queue[0], _candidate_actions(strategy, state)
        return state.current.table, [actions.changed([(rule, action)]) for action in candidates]

    def race_over(
        self, strategy: PatternStrategy, state: PatternState
    ) -> tuple[PatternState] | tuple[PatternState, progress_pb2.ProgressEvent]:
        winner = state.race.winner()
        if winner is None:
            return (_after_race(strategy, state, None),)
        rule, action = state.queue[0], _candidate_actions(strategy, state)[winner.number]
        improved = progress_pb2.RuleImproved(
            rule=rule,
            before=action_message(state.current.table.action(rule)),
            after=action_message(action),
            gain=winner.gain,
        )
        event = progress_pb2.ProgressEvent(rule_improved=improved)
        return _after_race(strategy, state, action), event


# Number of the most-used rules that are put on trial.
_RULES_ON_TRIAL = 3


class ProposeSplits(UsageStep["PatternStrategy", PatternState]):
    """Puts splits on trial: of the most-used rules, on each signal, at the median memory value."""

    purpose = progress_pb2.STEP_PURPOSE_SPLIT
    recording = RECORDING_SHARES

    def receive_usage(
        self, strategy: PatternStrategy, state: PatternState, outcome: Outcome
    ) -> tuple[PatternState]:
        table, memory = state.current.table, memory_summaries(outcome)
        splits = tuple(
            split
            for rule in rules_by_use(outcome.rule_uses)[:_RULES_ON_TRIAL]
            for split in trial_splits(
                strategy.space,
                table,
                rule,
                median_thresholds(table, rule, memory),
            )
        )
        if not splits:
            return (replace(state, purpose=progress_pb2.STEP_PURPOSE_COUNT_USES),)
        purpose, race = progress_pb2.STEP_PURPOSE_TRY_SPLITS, Race.of(len(splits))
        return (replace(state, purpose=purpose, splits=splits, race=race),)


class TrySplits(RaceRound):
    """A round of a race between splits on trial.

    The leader's split is made if its gain is positive. A split on one signal adds one rule.
    """

    purpose = progress_pb2.STEP_PURPOSE_TRY_SPLITS

    def candidates(
        self, strategy: PatternStrategy, state: PatternState
    ) -> tuple[RuleTable, list[evaluation_pb2.Candidate]]:
        return on_trial(state.current.table, state.splits)

    def race_over(
        self, strategy: PatternStrategy, state: PatternState
    ) -> tuple[PatternState] | tuple[PatternState, progress_pb2.ProgressEvent]:
        purpose = progress_pb2.STEP_PURPOSE_COUNT_USES
        after = replace(state, purpose=purpose, splits=(), race=Race())
        winner = state.race.leader()
        if winner is None or not winner.has_gained(0.0):
            return (after,)
        trial = state.splits[winner.number]
        current = trial.applied(state.current, strategy.search.first_step)
        after = replace(after, current=current, epochs_since_split=0)
        return after, trial.split.event(current.table)


class ValidateTable(Validate["PatternStrategy", PatternState]):
    """Ends an epoch, and decides whether splits are put on trial next.

    A table that does not beat the best one is rolled back to it, including its splits.
    """

    next_purpose = progress_pb2.STEP_PURPOSE_COUNT_USES

    def on_epoch_end(
        self, strategy: PatternStrategy, state: PatternState, record: progress_pb2.EpochRecord
    ) -> PatternState:
        after = replace(
            state, epochs_since_split=state.epochs_since_split + 1, races=0, changed_rules=()
        )
        if not record.comparison.accepted and state.best is not None:
            after = replace(after, current=PatternTable(state.best.table, state.best_steps))
        search = strategy.search
        is_slow = record.comparison.gain.mean < search.growth_threshold
        is_due = is_slow or after.epochs_since_split >= search.epochs_per_split
        limit = strategy.spec.search.maximum_rules or search.maximum_rules
        if is_due and after.working_table.rule_count < limit:
            return replace(after, purpose=progress_pb2.STEP_PURPOSE_SPLIT)
        return after


class PatternStrategy(ValidatingStrategy[PatternState]):
    """The pattern search: improves one rule at a time by compass steps, for small tables."""

    field = "pattern"
    state = PatternState
    steps: ClassVar = {
        step.purpose: step
        for step in (CountUses(), Polish(), ValidateTable(), ProposeSplits(), TrySplits())
    }

    search: spec_pb2.PatternSearch

    def __init__(self, spec: spec_pb2.DesignSpec, given: RuleTable | None = None) -> None:
        super().__init__(spec, given)
        self.space = ActionSpace(self.search, spec.rules)

    def first_state(self) -> PatternState:
        first = self.given or first_table(self.spec, self.space, start=0)
        steps = (self.search.first_step,) * first.rule_count
        return PatternState(
            purpose=progress_pb2.STEP_PURPOSE_VALIDATE, current=PatternTable(first, steps)
        )

    def restore_state(self, message: checkpoint_pb2.PatternSearchState) -> PatternState:
        state = super().restore_state(message)
        if state.purpose == progress_pb2.STEP_PURPOSE_IMPROVE:
            actions = len(_candidate_actions(self, state))
            last = max((candidate.number for candidate in state.race.candidates), default=0)
            if last >= actions:
                raise CheckpointError(
                    f"the checkpoint's race has a candidate {last}; the candidates are the "
                    f"{actions} neighbours of the rule's action, numbered from 0"
                )
        return state

    def finished(self, state: PatternState) -> progress_pb2.StopReason | None:
        is_over = state.step >= self.search.steps
        return progress_pb2.STOP_REASON_SCHEDULE_COMPLETE if is_over else None

    def share_done(self, state: PatternState) -> float | None:
        return min(state.step / self.search.steps, 1.0)
