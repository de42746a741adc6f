"""Rules divided on one signal, on trial: the parts are moved apart, and the score tells.

An evaluation changes actions, not the structure of its table. All trials therefore run on one table
in which every rule on trial is divided on all of its trials' signals at once; a trial gives one
action to all parts below its threshold and another to all above, which makes it the table that is
divided on that signal alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, rule_table_pb2
from remy_services.designer import changes
from remy_services.designer.action_space import Action, ActionSpace
from remy_services.designer.errors import CheckpointError
from remy_services.designer.pattern.compass import EAGERNESS, INTERSEND, WINDOW_MULTIPLE, moved
from remy_services.designer.pattern.pattern_table import PatternTable
from remy_services.designer.splitting import Split, Thresholds
from remy_simulator import RuleTable
from remy_simulator.messages import action_message, action_tuple, axis_of, signal_of

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
        return changes.several_rules(
            evaluation_pb2.ActionChanges(
                changes=[changes.action_change(part, self._action(trial, part)) for part in parts]
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
