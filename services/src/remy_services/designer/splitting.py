"""Where to divide a rule: at the medians of the memory values that triggered it (section 4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import remy_simulator
from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, rule_table_pb2
from remy_services.designer.scoring import by_use
from remy_simulator import RuleTable
from remy_simulator.columns import memory_summaries
from remy_simulator.messages import signal_of

#: (axis, value) pairs as RuleTable.split takes them.
Thresholds = list[tuple[int, float]]


@dataclass(frozen=True)
class Split:
    """A rule, and the point to divide it at."""

    rule: int
    thresholds: Thresholds

    def to_message(self) -> checkpoint_pb2.TrialDivision:
        """The division, on trial, bit by bit."""
        return checkpoint_pb2.TrialDivision(rule=self.rule, thresholds=self._thresholds())

    def event(self, after: RuleTable) -> progress_pb2.ProgressEvent:
        """What is told of it; `after` is the divided table."""
        thresholds = self._thresholds(after.rules)
        split = progress_pb2.RuleSplit(
            rule=self.rule, thresholds=thresholds, rules=after.rule_count
        )
        return progress_pb2.ProgressEvent(rule_split=split)

    def _thresholds(
        self, rules: int = rule_table_pb2.RULES_ABSOLUTE
    ) -> list[rule_table_pb2.Threshold]:
        return [
            rule_table_pb2.Threshold(signal=signal_of(axis, rules), value=value)
            for axis, value in self.thresholds
        ]


#: Counts of memory values by bucket, (buckets, counts), by (rule, axis).
Memory = Mapping[tuple[int, int], tuple[Sequence[int], Sequence[int]]]


def split_most_used(table: RuleTable, outcome: evaluation_pb2.EvaluationOutcome) -> Split | None:
    """Divides the most-used rule; one too small to be divided on any signal leaves its turn to the
    next most-used. None if there is nothing to divide."""
    memory = memory_summaries(outcome)
    for rule in by_use(outcome.rule_uses):
        thresholds = median_thresholds(table, rule, memory)
        if thresholds:
            return Split(rule, thresholds)
    return None


def median_thresholds(table: RuleTable, rule: int, memory: Memory) -> Thresholds:
    """The point to split `rule` at, one threshold for each of the table's signals.

    A median that does not lie strictly inside the rule's region (as when most values are equal to
    its lower end) gives way to the middle of the region, as in the reference tool. A signal on
    which that is impossible too is left out; the result may be empty.
    """
    lower, upper = table.region(rule)
    thresholds: Thresholds = []
    for axis in table.signals:
        places = [(lower[axis] + upper[axis]) / 2]
        if (rule, axis) in memory:
            places.insert(0, remy_simulator.summary_median(axis, *memory[rule, axis]))
        inside = [place for place in places if lower[axis] < place < upper[axis]]
        if inside:
            thresholds.append((axis, inside[0]))
    return thresholds
