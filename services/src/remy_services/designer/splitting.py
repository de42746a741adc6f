"""Where to divide a rule: at the medians of the memory values that triggered it (section 4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import remy_simulator
from remy_farm.v1 import evaluation_pb2, progress_pb2, rule_table_pb2
from remy_services.designer.scoring import by_use, total_uses
from remy_simulator import RuleTable
from remy_simulator.messages import axis_of, signal_of

#: (axis, value) pairs as RuleTable.split takes them.
Thresholds = list[tuple[int, float]]


@dataclass(frozen=True)
class Split:
    """A rule, and the point to divide it at."""

    rule: int
    thresholds: Thresholds

    def event(self, rules: int) -> progress_pb2.ProgressEvent:
        """What is told of it; `rules` is the number of rules after it."""
        thresholds = [
            rule_table_pb2.Threshold(signal=signal_of(axis), value=value)
            for axis, value in self.thresholds
        ]
        return progress_pb2.ProgressEvent(
            rule_split=progress_pb2.RuleSplit(rule=self.rule, thresholds=thresholds, rules=rules)
        )


def split_most_used(
    table: RuleTable, outcomes: Sequence[evaluation_pb2.SpecimenOutcome]
) -> Split | None:
    """Divides the most-used rule; one too small to be divided on any signal leaves its turn to the
    next most-used. None if there is nothing to divide."""
    for rule in by_use(total_uses(outcomes, table.rule_count)):
        thresholds = median_thresholds(table, rule, outcomes)
        if thresholds:
            return Split(rule, thresholds)
    return None


def median_thresholds(
    table: RuleTable, rule: int, outcomes: Iterable[evaluation_pb2.SpecimenOutcome]
) -> Thresholds:
    """The point to split `rule` at, one threshold for each of the table's signals.

    A median that does not lie strictly inside the rule's region (as when most values are equal to
    its lower end) gives way to the middle of the region, as in the reference tool. A signal on
    which that is impossible too is left out; the result may be empty.
    """
    counts = _merged_counts(rule, outcomes)
    lower, upper = table.region(rule)
    thresholds: Thresholds = []
    for axis in table.signals:
        values = counts.get(axis, {})
        buckets = sorted(values)
        places = [(lower[axis] + upper[axis]) / 2]
        if buckets:
            median = remy_simulator.summary_median(
                axis, buckets, [values[bucket] for bucket in buckets]
            )
            places.insert(0, median)
        inside = [place for place in places if lower[axis] < place < upper[axis]]
        if inside:
            thresholds.append((axis, inside[0]))
    return thresholds


def _merged_counts(
    rule: int, outcomes: Iterable[evaluation_pb2.SpecimenOutcome]
) -> dict[int, dict[int, int]]:
    """Counts by axis and bucket of the memory values that triggered `rule`."""
    merged: dict[int, dict[int, int]] = {}
    for outcome in outcomes:
        for memory in outcome.rule_memory:
            if memory.rule != rule:
                continue
            for summary in memory.signals:
                counts = merged.setdefault(axis_of(summary.signal), {})
                for bucket, count in zip(summary.buckets, summary.counts, strict=True):
                    counts[bucket] = counts.get(bucket, 0) + count
    return merged
