"""Divisions of rules: the table that is polished, and on trial on one signal each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, rule_table_pb2
from remy_services.designer import actions
from remy_services.designer.actions import ActionSpace
from remy_services.designer.pattern.race import EAGERNESS, INTERSEND, WINDOW_MULTIPLE, moved
from remy_services.designer.scoring import CheckpointError
from remy_services.designer.search import Saved, restored_table
from remy_services.designer.splitting import Split, Thresholds
from remy_simulator import RuleTable
from remy_simulator.messages import ActionTuple as Action
from remy_simulator.messages import action_message, action_tuple, axis_of, signal_of


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
