"""Where to divide a rule: at the medians of the memory values that triggered it (section 4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import remy_simulator
from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, rule_table_pb2
from remy_services.designer.actions import RTT_RATIO, START_RULE, has_start_rule
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


# Axes by what a division on them is worth: queues first, then how a sender's rate compares with
# what arrives, then how fast that is, and last how it was long ago.
_BY_WORTH = (RTT_RATIO, 0, 1, 3)


def split_most_used(
    table: RuleTable,
    outcome: evaluation_pb2.EvaluationOutcome,
    *,
    mended: bool = False,
    room: int | None = None,
) -> Split | None:
    """Divides the most-used rule; one too small to be divided on any signal leaves its turn to the
    next most-used. None if there is nothing to divide.

    The table grows by at most `room` rules if that is given: where all signals would add more, the
    ones that matter least are left out.
    """
    memory = memory_summaries(outcome)
    for rule in by_use(outcome.rule_uses):
        thresholds = median_thresholds(table, rule, memory, mended=mended)
        if room is not None:
            most = (room + 1).bit_length() - 1
            kept = sorted(thresholds, key=lambda threshold: _BY_WORTH.index(threshold[0]))[:most]
            thresholds = sorted(kept)
        if thresholds:
            return Split(rule, thresholds)
    return None


# An RTT that is longer than the smallest one by less cannot be told from it.
_SAME_RTT = 1 + 1 / (1 << 20)


def median_thresholds(
    table: RuleTable, rule: int, memory: Memory, *, mended: bool = False
) -> Thresholds:
    """The point to split `rule` at, one threshold for each of the table's signals.

    A median that does not lie strictly inside the rule's region (as when most values are equal to
    its lower end) gives way to the middle of the region, as in the reference tool. A signal on
    which that is impossible too is left out; the result may be empty.

    In the mended search such a signal is left out at once, and so is rtt_ratio where it is 1 more
    often than not: nothing lies below, and the middle of what nobody measures divides nothing. The
    rule of senders that have measured nothing has one memory value, and is not divided.
    """
    if mended and rule == START_RULE and has_start_rule(table):
        return []
    lower, upper = table.region(rule)
    thresholds: Thresholds = []
    for axis in table.signals:
        least = lower[axis]
        places = [] if mended else [(lower[axis] + upper[axis]) / 2]
        if (rule, axis) in memory:
            places.insert(0, remy_simulator.summary_median(axis, *memory[rule, axis]))
        if mended and axis == RTT_RATIO:
            least = max(least, _SAME_RTT)
        inside = [place for place in places if least < place < upper[axis]]
        if inside:
            thresholds.append((axis, inside[0]))
    return thresholds
