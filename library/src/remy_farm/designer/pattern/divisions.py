"""Divisions of rules: the table that is polished, and on trial on one signal each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remy_farm.designer import actions
from remy_farm.designer.actions import ActionSpace
from remy_farm.designer.pattern.race import EAGERNESS, INTERSEND, WINDOW_MULTIPLE, moved
from remy_farm.designer.scoring import CheckpointError
from remy_farm.designer.search import Saved, restored_table
from remy_farm.designer.splitting import (
    Split,
    Thresholds,
    check_possible,
    first_parts,
    trial_table,
)
from remy_proto.v1 import checkpoint_pb2, evaluation_pb2
from remy_simulator import RuleTable
from remy_simulator.messages import Action, action_message, native_action


@dataclass(frozen=True)
class PatternTable(Saved):
    """A table, and for each of its rules how far its next compass step goes."""

    message = checkpoint_pb2.PatternTable

    table: RuleTable
    steps: tuple[float, ...]

    def with_action(self, rule: int, action: Action) -> PatternTable:
        return PatternTable(self.table.with_action(rule, action), self.steps)

    def with_step(self, rule: int, step: float) -> PatternTable:
        return PatternTable(self.table, (*self.steps[:rule], step, *self.steps[rule + 1 :]))

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


# Rules divided on one signal, on trial: the parts are moved apart, and the score tells
#
# An evaluation changes actions, not the structure of its table. All trials therefore run on one
# table in which every rule on trial is divided on all of its trials' signals at once; a trial gives
# one action to all parts below its threshold and another to all above, which makes it the table
# that is divided on that signal alone.

# How the parts are moved apart, one this way and the other that way, and the reverse.
_APART = (WINDOW_MULTIPLE, INTERSEND, EAGERNESS)
_DISTANCES = (0.12, 0.36)


@dataclass(frozen=True)
class TrialSplit:
    """A rule divided at one threshold, with an action for either side."""

    split: Split
    below: Action
    above: Action

    def applied(self, current: PatternTable, step: float) -> PatternTable:
        """The table with the division made; both parts take their next step of size `step`."""
        rule = self.split.rule
        table = trial_table(current.table, [self.split])
        for part in (rule, rule + 1):
            table = table.with_action(part, self._action(table, part))
        steps = (*current.steps[:rule], step, step, *current.steps[rule + 1 :])
        return PatternTable(table, steps)

    def candidate(self, trial: RuleTable, parts: range) -> evaluation_pb2.Candidate:
        """The division on the table of all trials, in which the rule is divided into `parts`."""
        return actions.changed((part, self._action(trial, part)) for part in parts)

    def _action(self, table: RuleTable, part: int) -> Action:
        ((axis, value),) = self.split.thresholds
        lower, _ = table.region(part)
        return self.above if lower[axis] >= value else self.below

    def to_message(self) -> checkpoint_pb2.TrialSplit:
        (threshold,) = self.split.to_message().thresholds
        return checkpoint_pb2.TrialSplit(
            rule=self.split.rule,
            threshold=threshold,
            below=action_message(self.below),
            above=action_message(self.above),
        )

    @classmethod
    def from_message(cls, message: checkpoint_pb2.TrialSplit, table: RuleTable) -> TrialSplit:
        """The inverse. Raises CheckpointError unless `table` can be divided so."""
        split = Split.of(message.rule, [message.threshold])
        check_possible(table, [split])
        return cls(split, native_action(message.below), native_action(message.above))


def trial_splits(
    space: ActionSpace, table: RuleTable, rule: int, thresholds: Thresholds
) -> list[TrialSplit]:
    """A rule divided at each threshold alone, its parts moved apart in each way."""
    action = table.action(rule)
    trials = []
    for threshold in thresholds:
        split = Split(rule, [threshold])
        for direction in _APART:
            for distance in _DISTANCES:
                one = moved(space, action, direction, distance)
                other = moved(space, action, direction, -distance)
                if one != other:
                    trials.append(TrialSplit(split, one, other))
                    trials.append(TrialSplit(split, other, one))
    return trials


def on_trial(
    table: RuleTable, trials: Sequence[TrialSplit]
) -> tuple[RuleTable, list[evaluation_pb2.Candidate]]:
    """The table of all trials, and each trial as a change of it."""
    thresholds: dict[int, dict[int, float]] = {}
    for trial in trials:
        thresholds.setdefault(trial.split.rule, {}).update(trial.split.thresholds)
    splits = [Split(rule, sorted(thresholds[rule].items())) for rule in sorted(thresholds)]
    divided = trial_table(table, splits)
    parts = {
        split.rule: range(first, first + (1 << len(split.thresholds)))
        for split, first in zip(splits, first_parts(splits), strict=True)
    }
    return divided, [trial.candidate(divided, parts[trial.split.rule]) for trial in trials]
