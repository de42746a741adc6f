"""Divisions of rules: on trial, at the medians of what triggered them (section 4.3), and undone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import remy_simulator
from remy_farm.designer.actions import RTT_RATIO, START_RULE, has_start_rule
from remy_farm.designer.scoring import CheckpointError, by_use
from remy_proto.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, rule_table_pb2
from remy_simulator import RuleTable, signals
from remy_simulator.columns import memory_summaries
from remy_simulator.messages import USUAL_AXES, axis_of, signal_of

#: (axis, value) pairs as RuleTable.split takes them.
Thresholds = list[tuple[int, float]]


@dataclass(frozen=True)
class Split:
    """A rule, and the point to divide it at."""

    rule: int
    thresholds: Thresholds

    @classmethod
    def of(cls, rule: int, thresholds: Iterable[rule_table_pb2.Threshold]) -> Split:
        """The division that a message names."""
        return cls(rule, [(axis_of(each.signal), each.value) for each in thresholds])

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


# Divisions on trial, by increasing rule of the undivided table.


def trial_table(table: RuleTable, trials: Sequence[Split]) -> RuleTable:
    """The table with all trials made."""
    # From the back, so that the numbers of the rules still to be divided stay what they are.
    for trial in reversed(trials):
        table = table.split(trial.rule, trial.thresholds)
    return table


def first_parts(trials: Sequence[Split]) -> list[int]:
    """The number, in the table of all trials, of each trial's first part.

    Part `i` of a trial lies above its threshold number `k` exactly if bit `k` of `i` is set.
    """
    firsts = []
    added = 0
    for trial in trials:
        firsts.append(trial.rule + added)
        added += (1 << len(trial.thresholds)) - 1
    return firsts


def check_possible(table: RuleTable, trials: Sequence[Split]) -> None:
    """Raises CheckpointError unless `table` can be divided so."""
    try:
        trial_table(table, trials)
    except (IndexError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"the checkpoint holds an impossible division of a rule: {error}"
        ) from error


# Where to divide a rule.

#: Counts of memory values by bucket, (buckets, counts), by (rule, axis).
Memory = Mapping[tuple[int, int], tuple[Sequence[int], Sequence[int]]]


_RULES_AT_ONCE = 7


def split_most_used(
    table: RuleTable,
    outcome: evaluation_pb2.EvaluationOutcome,
    *,
    room: int | None = None,
    like_reference: bool = False,
) -> Split | None:
    """Divides the most-used rule; one too small to be divided on any signal leaves its turn to the
    next most-used. None if there is nothing to divide.

    The table grows by at most `room` rules if that is given: where all signals would add more, the
    ones that matter least are left out. A table that looks at more than the usual signals is
    divided on three at a time: on those first that divide its rule least. With `like_reference`
    all signals are divided on at once, at the points of the reference tool (`median_thresholds`).
    """
    memory = memory_summaries(outcome)
    has_more = table.signals[-1] >= USUAL_AXES
    if has_more and not like_reference:
        room = min(_RULES_AT_ONCE if room is None else room, _RULES_AT_ONCE)
    for rule in by_use(outcome.rule_uses):
        thresholds = median_thresholds(table, rule, memory, like_reference=like_reference)
        if room is not None:
            most = (room + 1).bit_length() - 1
            by_turn = sorted(thresholds, key=lambda each: signals.AXES[each[0]].turn)
            if has_more:
                bounds = _bounds(table, rule)
                by_turn.sort(key=lambda each: bounds[each[0]])
            thresholds = sorted(by_turn[:most])
        if thresholds:
            return Split(rule, thresholds)
    return None


def _bounds(table: RuleTable, rule: int) -> list[int]:
    """How many ends of the rule's region are not the domain's, by axis."""
    lower, upper = table.region(rule)
    return [(low > 0) + (high < table.domain_upper) for low, high in zip(lower, upper, strict=True)]


# An RTT that is longer than the smallest one by less cannot be told from it.
_SAME_RTT = 1 + 1 / (1 << 20)


def median_thresholds(
    table: RuleTable, rule: int, memory: Memory, *, like_reference: bool = False
) -> Thresholds:
    """The point to split `rule` at, one threshold for each of the table's signals.

    A signal whose median does not lie strictly inside the rule's region (as when most values are
    equal to its lower end) is left out, and so is rtt_ratio where it is 1 more often than not:
    nothing lies below, and the middle of what nobody measures divides nothing. The rule of senders
    that have measured nothing has one memory value, and is not divided. The result may be empty.

    With `like_reference`, as the paper's search divides, such a median gives way to the middle of
    the region, as in the reference tool; a signal on which that is impossible too is left out.
    """
    if not like_reference and rule == START_RULE and has_start_rule(table):
        return []
    lower, upper = table.region(rule)
    thresholds: Thresholds = []
    for axis in table.signals:
        least = lower[axis]
        places = [(lower[axis] + upper[axis]) / 2] if like_reference else []
        if (rule, axis) in memory:
            places.insert(0, remy_simulator.summary_median(axis, *memory[rule, axis]))
        if not like_reference and axis == RTT_RATIO:
            least = max(least, _SAME_RTT)
        inside = [place for place in places if least < place < upper[axis]]
        if inside:
            thresholds.append((axis, inside[0]))
    return thresholds


# Merging: a division undone between a rule and what one threshold of its node tells it from, which
# may be divided itself. Where a node divides on several signals, that one is divided last, part by
# part, from then on.

#: A rule's number; or an inner node: its number, -1 if it is new, its thresholds, and its children.
_Tree = int | tuple[int, Thresholds, list["_Tree"]]


@dataclass(frozen=True)
class RuleMerge:
    """A rule that may be given up to its neighbours."""

    rule: int
    #: Those on the other side of a threshold, in their order.
    neighbours: tuple[int, ...]


def possible_merges(table: RuleTable) -> list[RuleMerge]:
    """All that there are; none of the rule of senders that have measured nothing."""
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
    """The table without the rule, and for each of its rules and inner nodes the number that it had,
    -1 for an inner node that is new."""
    tree = _without(merge, _tree_of(table))
    rules = list(_rules(tree))
    nodes = [
        ([], table.action(node)) if isinstance(node, int) else (node[1], table.action(0))
        for node in _preorder(tree)
    ]
    inner = [number for number, _, _ in _branches(tree)]
    return RuleTable(table.signals, nodes, table.domain_upper, table.rules), rules, inner


def _without(merge: RuleMerge, tree: _Tree) -> _Tree:
    if isinstance(tree, int):
        return tree
    number, thresholds, children = tree
    if merge.rule not in children:
        return number, thresholds, [_without(merge, child) for child in children]
    place = children.index(merge.rule)
    (bit,) = (
        bit
        for bit in range(len(thresholds))
        if tuple(_rules(children[place ^ 1 << bit])) == merge.neighbours
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
