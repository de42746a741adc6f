"""Splits rules at the medians of their memory values (section 4.3), and merges them again."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import remy_simulator
from remy_farm.designer.actions import RTT_RATIO, START_RULE, has_start_rule
from remy_farm.designer.scoring import CheckpointError, rules_by_use
from remy_proto.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, rule_table_pb2
from remy_simulator import RuleTable, signals
from remy_simulator.columns import memory_summaries
from remy_simulator.messages import BASIC_AXES, axis_of, signal_of

#: (axis, value) pairs, as `RuleTable.split` takes them.
Thresholds = list[tuple[int, float]]


@dataclass(frozen=True)
class Split:
    """A rule, and the point to split it at: one threshold per signal."""

    rule: int
    thresholds: Thresholds

    @classmethod
    def of(cls, rule: int, thresholds: Iterable[rule_table_pb2.Threshold]) -> Split:
        """Returns the split of a rule at the thresholds of a message."""
        return cls(rule, [(axis_of(each.signal), each.value) for each in thresholds])

    def to_message(self) -> checkpoint_pb2.SplitOnTrial:
        """Returns the checkpoint's message of a split on trial."""
        return checkpoint_pb2.SplitOnTrial(rule=self.rule, thresholds=self._thresholds())

    def event(self, after: RuleTable) -> progress_pb2.ProgressEvent:
        """Returns the event of this split; `after` is the table after it."""
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


# Splits on trial, by increasing rule number in the table before the splits


def trial_table(table: RuleTable, trials: Sequence[Split]) -> RuleTable:
    """Returns the table after all splits on trial."""
    # In reverse order, because a split changes the numbers of the rules after it.
    for trial in reversed(trials):
        table = table.split(trial.rule, trial.thresholds)
    return table


def first_parts(trials: Sequence[Split]) -> list[int]:
    """Returns the number in `trial_table` of each trial's first part.

    Part `i` of a trial lies above threshold `k` of the trial if and only if bit `k` of `i` is set.
    """
    firsts = []
    added = 0
    for trial in trials:
        firsts.append(trial.rule + added)
        added += (1 << len(trial.thresholds)) - 1
    return firsts


def check_possible(table: RuleTable, trials: Sequence[Split]) -> None:
    """Raises CheckpointError unless `table` can be split so."""
    try:
        trial_table(table, trials)
    except (IndexError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"the checkpoint holds an impossible split of a rule: {error}"
        ) from error


# Where to split a rule

#: Histograms of memory values, as (buckets, counts), by (rule, axis).
Memory = Mapping[tuple[int, int], tuple[Sequence[int], Sequence[int]]]


# Rules that one split may add to a table with extended signals: three signals at a time.
_RULES_AT_ONCE = 7


def split_most_used(
    table: RuleTable,
    outcome: evaluation_pb2.EvaluationOutcome,
    *,
    room: int | None = None,
    like_reference: bool = False,
) -> Split | None:
    """Returns the split of the most-used rule that can be split; None if no rule can be.

    The table grows by at most `room` rules, or without limit if it is None. If a split on all
    signals would add more, the least important signals are left out. A table with extended signals
    is split on three signals at a time, first on those that bound the rule's region least.
    With `like_reference` a rule is split on all signals, at the points of the reference tool (see
    `median_thresholds`).
    """
    memory = memory_summaries(outcome)
    has_extended_signals = table.signals[-1] >= BASIC_AXES
    if has_extended_signals and not like_reference:
        room = min(_RULES_AT_ONCE if room is None else room, _RULES_AT_ONCE)
    for rule in rules_by_use(outcome.rule_uses):
        thresholds = median_thresholds(table, rule, memory, like_reference=like_reference)
        if room is not None:
            max_signals = (room + 1).bit_length() - 1
            by_importance = sorted(thresholds, key=lambda each: signals.AXES[each[0]].turn)
            if has_extended_signals:
                bounds = _bounds(table, rule)
                by_importance.sort(key=lambda each: bounds[each[0]])
            thresholds = sorted(by_importance[:max_signals])
        if thresholds:
            return Split(rule, thresholds)
    return None


def _bounds(table: RuleTable, rule: int) -> list[int]:
    """Returns how many bounds of the rule's region (0 to 2) are not the domain's, by axis."""
    lower, upper = table.region(rule)
    return [(low > 0) + (high < table.domain_upper) for low, high in zip(lower, upper, strict=True)]


# RTT ratios below this are indistinguishable from 1.
_SAME_RTT = 1 + 1 / (1 << 20)


def median_thresholds(
    table: RuleTable, rule: int, memory: Memory, *, like_reference: bool = False
) -> Thresholds:
    """Returns the point to split `rule` at, with at most one threshold per signal of the table.

    The threshold is the median of the rule's memory values. A signal is left out if the median does
    not lie strictly inside the rule's region, as when most values equal its lower bound. rtt_ratio
    is also left out if its median is 1, because no value lies below. The start rule has a single
    memory value and is not split. The result may be empty.

    With `like_reference`, the middle of the region replaces a median that is not inside, as in the
    reference tool. A signal is left out only if the middle is not inside either.
    """
    if not like_reference and rule == START_RULE and has_start_rule(table):
        return []
    lower, upper = table.region(rule)
    thresholds: Thresholds = []
    for axis in table.signals:
        least = lower[axis]
        points = [(lower[axis] + upper[axis]) / 2] if like_reference else []
        if (rule, axis) in memory:
            points.insert(0, remy_simulator.summary_median(axis, *memory[rule, axis]))
        if not like_reference and axis == RTT_RATIO:
            least = max(least, _SAME_RTT)
        inside = [point for point in points if least < point < upper[axis]]
        if inside:
            thresholds.append((axis, inside[0]))
    return thresholds


# Merging
#
# A merge removes a rule and extends the subtree on the other side of one threshold of the rule's
# parent node over the rule's region. If the parent splits on several signals, the merged threshold
# moves below the parent: each remaining pair of parts gets a new inner node with that threshold.

#: A rule number, or an inner node: (number, or -1 if it is new; thresholds; children).
_Tree = int | tuple[int, Thresholds, list["_Tree"]]


@dataclass(frozen=True)
class RuleMerge:
    """A rule, and the neighbours that replace it."""

    rule: int
    #: The rules on the other side of the threshold, in ascending order.
    neighbours: tuple[int, ...]


def possible_merges(table: RuleTable) -> list[RuleMerge]:
    """Returns all merges of the table. The start rule is never merged."""
    kept = START_RULE if has_start_rule(table) else None
    return [
        RuleMerge(child, tuple(_rules(other)))
        for _, thresholds, children in _branches(_tree_of(table))
        for part, child in enumerate(children)
        for bit in range(len(thresholds))
        if isinstance(child, int) and child != kept
        for other in [children[part ^ 1 << bit]]
        if other != kept and not (isinstance(other, int) and part >> bit & 1)
    ]


def merged(table: RuleTable, merge: RuleMerge) -> tuple[RuleTable, list[int], list[int]]:
    """Returns the table after a merge, and the former numbers of its rules and of its inner nodes.

    The former number of a new inner node is -1.
    """
    tree = _without(merge, _tree_of(table))
    rules = list(_rules(tree))
    nodes = [
        ([], table.action(node)) if isinstance(node, int) else (node[1], table.action(0))
        for node in _preorder(tree)
    ]
    inner = [number for number, _, _ in _branches(tree)]
    merged_table = RuleTable(
        table.signals, nodes, table.domain_upper, table.rules, table.path_model
    )
    return merged_table, rules, inner


def _without(merge: RuleMerge, tree: _Tree) -> _Tree:
    if isinstance(tree, int):
        return tree
    number, thresholds, children = tree
    if merge.rule not in children:
        return number, thresholds, [_without(merge, child) for child in children]
    index = children.index(merge.rule)
    (bit,) = (
        bit
        for bit in range(len(thresholds))
        if tuple(_rules(children[index ^ 1 << bit])) == merge.neighbours
    )
    parts = []
    for part in range(len(children)):
        if not part >> bit & 1:
            sides = [children[part], children[part | 1 << bit]]
            if merge.rule in sides:
                sides.remove(merge.rule)
                parts += sides
            else:
                parts.append((-1, [thresholds[bit]], sides))
    others = thresholds[:bit] + thresholds[bit + 1 :]
    return (number, others, parts) if others else parts[0]


def _tree_of(table: RuleTable) -> _Tree:
    nodes, rules, inner = iter(table.nodes()), itertools.count(), itertools.count()

    def read() -> _Tree:
        thresholds, _ = next(nodes)
        if not thresholds:
            return next(rules)
        return next(inner), list(thresholds), [read() for _ in range(1 << len(thresholds))]

    return read()


def _preorder(tree: _Tree) -> Iterator[_Tree]:
    yield tree
    if not isinstance(tree, int):
        for child in tree[2]:
            yield from _preorder(child)


def _rules(tree: _Tree) -> Iterator[int]:
    return (node for node in _preorder(tree) if isinstance(node, int))


def _branches(tree: _Tree) -> Iterator[tuple[int, Thresholds, list[_Tree]]]:
    return (node for node in _preorder(tree) if not isinstance(node, int))
