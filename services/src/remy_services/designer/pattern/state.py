"""What the steps of the pattern search share: the context, the state and its message."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, rule_table_pb2, spec_pb2
from remy_services.designer import actions
from remy_services.designer.actions import ActionSpace
from remy_services.designer.pattern.race import EAGERNESS, INTERSEND, WINDOW_MULTIPLE, Race, moved
from remy_services.designer.scoring import CheckpointError
from remy_services.designer.splitting import Split, Thresholds
from remy_services.designer.strategy import (
    NO_EFFORT,
    Effort,
    StepReport,
    StrategyContext,
    Validated,
    restored_table,
)
from remy_simulator import RuleTable
from remy_simulator.messages import ActionTuple as Action
from remy_simulator.messages import action_message, action_tuple, axis_of, from_native, signal_of

# What the steps of the pattern search have in common.


class Context(StrategyContext):
    """What a design fixes for all of its steps."""

    @property
    def search(self) -> spec_pb2.PatternSearch:
        return self.spec.search.pattern

    def round_request(
        self,
        purpose: progress_pb2.StepPurpose,
        *path: int,
        table: RuleTable,
        candidates: list[evaluation_pb2.Candidate],
        race: Race,
    ) -> evaluation_pb2.EvaluationRequest:
        """The next round of the race that `purpose` and `path` name: the unchanged table and those
        of its `candidates` that still run, on fresh specimens."""
        path = (*path, race.specimens)
        return self.request(
            purpose,
            *path,
            table=table,
            candidates=[
                actions.unchanged(),
                *(candidates[runner.candidate] for runner in race.runners),
            ],
            specimens=self.streams.specimens(
                purpose, *path, count=race.next_specimens(self.search), stratified=True
            ),
        )


# A table that is being polished.


@dataclass(frozen=True)
class PatternTable:
    """A table, and for each of its rules how far its next compass step goes."""

    table: RuleTable
    steps: tuple[float, ...]

    def with_action(self, rule: int, action: Action) -> PatternTable:
        return PatternTable(self.table.with_action(rule, action), self.steps)

    def with_step(self, rule: int, step: float) -> PatternTable:
        return PatternTable(self.table, (*self.steps[:rule], step, *self.steps[rule + 1 :]))

    def to_message(self) -> checkpoint_pb2.PatternTable:
        return checkpoint_pb2.PatternTable(table=from_native(self.table), steps=self.steps)

    @classmethod
    def from_message(cls, message: checkpoint_pb2.PatternTable) -> PatternTable:
        """The inverse. Raises CheckpointError for what `to_message` never writes."""
        table = restored_table(message.table)
        return cls(table, checked_steps(table, message.steps))


def checked_steps(table: RuleTable, steps: Sequence[float]) -> tuple[float, ...]:
    """The steps of a table's rules. Raises CheckpointError unless there is one for each."""
    if len(steps) != table.rule_count:
        raise CheckpointError(
            f"the checkpoint has steps for {len(steps)} rules; its table has {table.rule_count}"
        )
    return tuple(steps)


# Rules divided on one signal, on trial: the parts are moved apart, and the score tells.
#
# An evaluation changes actions, not the structure of its table. All trials therefore run on one
# table
# in which every rule on trial is divided on all of its trials' signals at once; a trial gives one
# action to all parts below its threshold and another to all above, which makes it the table that is
# divided on that signal alone.


# How the parts are moved apart, one this way and the other that way, and the reverse.
_APART = (WINDOW_MULTIPLE, INTERSEND, EAGERNESS)
_DISTANCES = (0.12, 0.36)


@dataclass(frozen=True)
class TrialSplit:
    """A rule divided at one threshold, with an action for either side."""

    rule: int
    axis: int
    value: float
    below: Action
    above: Action

    @property
    def split(self) -> Split:
        return Split(self.rule, [(self.axis, self.value)])

    def applied(self, current: PatternTable, step: float) -> PatternTable:
        """The table with the division made; both parts take their next step of size `step`."""
        table = current.table.split(self.rule, [(self.axis, self.value)])
        for part in (self.rule, self.rule + 1):
            table = table.with_action(part, self._action(table, part))
        steps = (*current.steps[: self.rule], step, step, *current.steps[self.rule + 1 :])
        return PatternTable(table, steps)

    def candidate(self, trial: RuleTable, parts: range) -> evaluation_pb2.Candidate:
        """The division on the table of all trials, in which the rule is divided into `parts`."""
        return actions.several_rules(
            evaluation_pb2.ActionChanges(
                changes=[actions.action_change(part, self._action(trial, part)) for part in parts]
            )
        )

    def _action(self, table: RuleTable, part: int) -> Action:
        lower, _ = table.region(part)
        return self.above if lower[self.axis] >= self.value else self.below

    def to_message(self) -> checkpoint_pb2.TrialSplit:
        return checkpoint_pb2.TrialSplit(
            rule=self.rule,
            threshold=rule_table_pb2.Threshold(signal=signal_of(self.axis), value=self.value),
            below=action_message(self.below),
            above=action_message(self.above),
        )

    @classmethod
    def from_message(cls, message: checkpoint_pb2.TrialSplit, table: RuleTable) -> TrialSplit:
        """The inverse. Raises CheckpointError unless `table` can be divided so."""
        axis, value = axis_of(message.threshold.signal), message.threshold.value
        try:
            table.split(message.rule, [(axis, value)])
        except (IndexError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"the checkpoint holds an impossible division of a rule: {error}"
            ) from error
        below, above = action_tuple(message.below), action_tuple(message.above)
        return cls(message.rule, axis, value, below, above)


def trial_splits(
    space: ActionSpace, table: RuleTable, rule: int, thresholds: Thresholds
) -> list[TrialSplit]:
    """A rule divided at each threshold alone, its parts moved apart in each way."""
    action = table.action(rule)
    trials = []
    for axis, value in thresholds:
        for direction in _APART:
            for distance in _DISTANCES:
                one = moved(space, action, direction, distance)
                other = moved(space, action, direction, -distance)
                if one != other:
                    trials.append(TrialSplit(rule, axis, value, one, other))
                    trials.append(TrialSplit(rule, axis, value, other, one))
    return trials


def on_trial(
    table: RuleTable, splits: Sequence[TrialSplit]
) -> tuple[RuleTable, list[evaluation_pb2.Candidate]]:
    """The table of all trials, and each trial as a change of it."""
    thresholds: dict[int, dict[int, float]] = {}
    for split in splits:
        thresholds.setdefault(split.rule, {})[split.axis] = split.value
    parts: dict[int, range] = {}
    trial = table
    for rule in sorted(thresholds):
        # Divisions of earlier rules have given this one, and all behind it, another number.
        first = rule + trial.rule_count - table.rule_count
        trial = trial.split(first, sorted(thresholds[rule].items()))
        parts[rule] = range(first, rule + 1 + trial.rule_count - table.rule_count)
    return trial, [split.candidate(trial, parts[split.rule]) for split in splits]


# Where the pattern search stands: a value, and its message.


_PURPOSES = (
    progress_pb2.STEP_PURPOSE_COUNT_USES,
    progress_pb2.STEP_PURPOSE_IMPROVE,
    progress_pb2.STEP_PURPOSE_VALIDATE,
    progress_pb2.STEP_PURPOSE_SPLIT,
    progress_pb2.STEP_PURPOSE_TRY_SPLITS,
)


@dataclass(frozen=True)
class PatternState:
    """The state between two steps."""

    #: What the next step is for.
    purpose: progress_pb2.StepPurpose
    #: The table being polished.
    current: PatternTable
    #: Steps made.
    step: int = 0
    #: The global epoch.
    epoch: int = 0
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
    #: What this epoch has cost.
    effort: Effort = NO_EFFORT

    def next_epoch(self, purpose: progress_pb2.StepPurpose) -> PatternState:
        """The beginning of the next epoch, with the table as it is."""
        return replace(
            self,
            purpose=purpose,
            epoch=self.epoch + 1,
            races=0,
            changed_rules=(),
            effort=NO_EFFORT,
        )

    def to_message(self) -> checkpoint_pb2.PatternSearchState:
        """The state, bit by bit."""
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
                can_go_on = self.purpose in _PURPOSES
        begins = self.purpose == progress_pb2.STEP_PURPOSE_VALIDATE
        return (
            can_go_on
            and all(rule < rules for rule in self.queue)
            and (self.best is not None or begins)
        )


# The interface of one step of the pattern search.


class Step(Protocol):
    """A step: what it asks for, and where the search stands after the answer. Pure functions."""

    def request(self, context: Context, state: PatternState) -> evaluation_pb2.EvaluationRequest:
        """What is to be evaluated."""

    def receive(
        self,
        context: Context,
        state: PatternState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PatternState, StepReport]:
        """The next state, and what happened."""
