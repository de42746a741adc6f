"""Puts splits of a rule on one signal on trial, as candidates of a race."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remy_farm.designer import actions
from remy_farm.designer.actions import ActionSpace
from remy_farm.designer.pattern.race import AGGRESSIVENESS, INTERSEND, WINDOW_MULTIPLE, moved
from remy_farm.designer.scoring import CheckpointError
from remy_farm.designer.search import CheckpointValue, restored_table
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
class PatternTable(CheckpointValue):
    """A table, and the size of each rule's next compass step."""

    message = checkpoint_pb2.PatternTable

    table: RuleTable
    #: Size of each rule's next compass step, in coordinates.
    steps: tuple[float, ...]

    def with_action(self, rule: int, action: Action) -> PatternTable:
        return PatternTable(self.table.with_action(rule, action), self.steps)

    def with_step(self, rule: int, step: float) -> PatternTable:
        return PatternTable(self.table, (*self.steps[:rule], step, *self.steps[rule + 1 :]))

    @classmethod
    def from_message(cls, message: checkpoint_pb2.PatternTable) -> PatternTable:
        """Reads what `to_message` wrote. Raises CheckpointError for anything else."""
        table = restored_table(message.table)
        return cls(table, checked_step_sizes(table, message.steps))


def checked_step_sizes(table: RuleTable, sizes: Sequence[float]) -> tuple[float, ...]:
    """Returns the step sizes. Raises CheckpointError unless there is one for each of the rules."""
    if len(sizes) != table.rule_count:
        raise CheckpointError(
            f"the checkpoint has step sizes for {len(sizes)} rules; its table has "
            f"{table.rule_count} rules"
        )
    return tuple(sizes)


# Trials: a rule is split on one signal, and the actions of its two parts are moved apart
#
# A candidate of an evaluation can change the actions of a table, but not its structure. All trials
# therefore share one table, in which each rule on trial is split on the signals of all of its
# trials. A trial then assigns one action to all parts below its threshold and another to all parts
# above, which is equivalent to a split on that signal alone.

# Directions and distances by which the parts are moved apart; each also in the opposite direction.
_DIRECTIONS = (WINDOW_MULTIPLE, INTERSEND, AGGRESSIVENESS)
_DISTANCES = (0.12, 0.36)


@dataclass(frozen=True)
class TrialSplit:
    """A split of a rule at one threshold, with an action for each side."""

    split: Split
    below: Action
    above: Action

    def applied(self, current: PatternTable, step: float) -> PatternTable:
        """Returns the table after the split. `step` is the step length of both parts."""
        rule = self.split.rule
        table = trial_table(current.table, [self.split])
        for part in (rule, rule + 1):
            table = table.with_action(part, self._action(table, part))
        steps = (*current.steps[:rule], step, step, *current.steps[rule + 1 :])
        return PatternTable(table, steps)

    def candidate(self, trial: RuleTable, parts: range) -> evaluation_pb2.Candidate:
        """Returns the candidate of this split on the table `trial`, which all trials share.

        `parts` are the numbers of the rule's parts in it.
        """
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
        """Reads what `to_message` wrote. Raises CheckpointError unless `table` can be split so."""
        split = Split.of(message.rule, [message.threshold])
        check_possible(table, [split])
        return cls(split, native_action(message.below), native_action(message.above))


def trial_splits(
    space: ActionSpace, table: RuleTable, rule: int, thresholds: Thresholds
) -> list[TrialSplit]:
    """Returns the trials of a rule: one per threshold, direction and distance."""
    action = table.action(rule)
    trials = []
    for threshold in thresholds:
        split = Split(rule, [threshold])
        for direction in _DIRECTIONS:
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
    """Returns the table that all trials share, and the candidate of each trial."""
    thresholds: dict[int, dict[int, float]] = {}
    for trial in trials:
        thresholds.setdefault(trial.split.rule, {}).update(trial.split.thresholds)
    splits = [Split(rule, sorted(thresholds[rule].items())) for rule in sorted(thresholds)]
    shared = trial_table(table, splits)
    parts = {
        split.rule: range(first, first + (1 << len(split.thresholds)))
        for split, first in zip(splits, first_parts(splits), strict=True)
    }
    return shared, [trial.candidate(shared, parts[trial.split.rule]) for trial in trials]
