"""Explaining rule tables: what signals are worth, and how two tables differ.

Trees and actions are pure values; whatever is measured goes through a `NetworkSample`, which is
given the evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import add

import remy_simulator
from remy_farm.analysis.report import Gain
from remy_farm.analysis.trees import (
    ActionScale,
    Box,
    Branch,
    ExplainError,
    Leaf,
    Tree,
    leaves,
    map_leaves,
    overlay,
    table_of,
    tree_of,
    without_axis,
)
from remy_farm.evaluation.measures import Estimate, Evaluate, Trial, evaluate_table
from remy_farm.remycc import ReadableRule, guards_of_start, readable_rules, start_rule
from remy_proto.v1 import spec_pb2
from remy_simulator import RuleTable
from remy_simulator.messages import Action

OnProgress = Callable[[str, int, int], object]
"""Called before each table of a study with the part that it belongs to, how many tables of that
have been tried, and how many there are; what it raises comes out of the study."""


def unheard(*_: object) -> None:
    """For whom nobody waits."""


# Names the specimens on which what was chosen on others is measured again.
_FRESH = 0x6672657368


@dataclass(frozen=True, slots=True)
class PairedScores:
    """The scores of two tables on the same specimens."""

    before: Estimate | None
    after: Estimate | None
    difference: Estimate | None
    """Mean over specimens, after minus before; None if none could be scored under both."""


@dataclass(frozen=True)
class NetworkSample:
    """Networks that `seed` draws from a specification, and who simulates on them.

    The networks are those of `remy-farm evaluate` with the same seed.
    """

    spec: spec_pb2.DesignSpec
    seed: int
    specimens: int
    evaluate: Evaluate

    def trial(self, table: RuleTable) -> Trial:
        """The table on every specimen."""
        return evaluate_table(
            self.spec, table, seed=self.seed, specimens=self.specimens, evaluate=self.evaluate
        )

    def scores(self, before: Trial, after: Trial) -> PairedScores:
        """Of two trials made here."""
        difference = Gain(before, after, self.seed).score()
        return PairedScores(before.summary().score, after.summary().score, difference)

    def fresh(self) -> NetworkSample:
        """As many other specimens of the same specification."""
        return replace(self, seed=remy_simulator.mix(self.seed, _FRESH))


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a rule's region: lower <= signal < upper."""

    lower: float
    upper: float
    rule: int


Column = tuple[Piece, ...]
"""What lies on the signal's axis over one region of the other signals, from below, without gaps."""


@dataclass(frozen=True, slots=True)
class SignalWorth:
    """A table with and without one of its signals, on the same specimens."""

    axis: int
    scores: PairedScores
    """With the signal, then without; the difference is negative if it is worth something."""
    without: RuleTable


@dataclass(frozen=True, slots=True)
class SignalStudy:
    """What the signals of a table are worth."""

    rules: int
    """The kind of the table."""
    score: Estimate | None
    """Of the table as it is."""
    signals: tuple[SignalWorth, ...]
    """Each signal of the table, the one that is worth most first."""


def worth_of_signals(
    table: RuleTable, sample: NetworkSample, on_progress: OnProgress = unheard
) -> SignalStudy:
    """Takes each signal of the table away, one at a time.

    For every point of the other signals' space the rules met along the signal's axis become one,
    whose action is their mean weighted by use. Regions on both sides of a threshold are laid over
    each other for that, so that the merged table still divides wherever the table did on another
    signal. How often each piece is used is measured with the rules cut into these pieces, which
    changes nothing else: they act as before. The rule with which scale-free rules begin is in
    other units than the rest, and stays a rule of its own.

    Raises ExplainError for a table whose cells are too fine or too deep to be merged.
    """
    original = sample.trial(table)
    worth = []
    for tried, axis in enumerate(table.signals):
        on_progress("signals", tried, len(table.signals))
        tree = columns(table, axis)
        uses = sample.trial(cut_into_columns(table, tree, axis)).rule_uses
        without = _with_start_of(table, merge_columns(table, tree, uses), axis)
        scores = sample.scores(original, sample.trial(without))
        worth.append(SignalWorth(axis, scores, without))
    worth.sort(key=lambda each: each.scores.difference.mean if each.scores.difference else 0.0)
    return SignalStudy(table.rules, original.summary().score, tuple(worth))


def columns(table: RuleTable, axis: int) -> Tree[Column]:
    """The table as a tree over its other signals, with what lies along `axis` in the leaves."""

    def stack(node: Tree[int], box: Box) -> Tree[Column]:
        if isinstance(node, Leaf):
            lower, upper = box.lower[axis], box.upper[axis]
            return Leaf((Piece(lower, upper, node.value),) if lower < upper else ())
        parts = [
            stack(child, box.child(node.thresholds, number))
            for number, child in enumerate(node.children)
        ]
        rest, bit = without_axis(node.thresholds, axis)
        if bit < 0:
            return Branch(rest, tuple(parts))
        side = 1 << bit
        pairs = [number for number in range(len(parts)) if not number & side]
        joined = tuple(
            overlay(parts[low], parts[low | side], box.child(rest, position), add)
            for position, low in enumerate(pairs)
        )
        return Branch(rest, joined) if rest else joined[0]

    return stack(tree_of(table), Box.whole(table.domain_upper))


def cut_into_columns(table: RuleTable, tree: Tree[Column], axis: int) -> RuleTable:
    """The table with its rules cut into the columns' pieces, numbered in the columns' order."""

    def cut(node: Tree[Column]) -> Tree[Action]:
        if isinstance(node, Branch):
            return Branch(node.thresholds, tuple(cut(child) for child in node.children))
        return divide(node.value)

    def divide(column: Column) -> Tree[Action]:
        if len(column) == 1:
            return Leaf(table.action(column[0].rule))
        middle = len(column) // 2
        threshold = (axis, column[middle].lower)
        return Branch((threshold,), (divide(column[:middle]), divide(column[middle:])))

    return table_of(cut(tree), table.signals, table.domain_upper, table.rules)


def merge_columns(table: RuleTable, tree: Tree[Column], uses: Sequence[int]) -> RuleTable:
    """The table with each column made one rule; `uses` are those of the pieces, in their order.

    The rule with which a scale-free table begins counts in no mean of others.
    """
    start = start_rule(table)
    scale = ActionScale((table.action(rule) for rule in range(table.rule_count)), table.rules)
    remaining = iter(uses)

    def merge(column: Column) -> Action:
        weighed = [(piece.rule, next(remaining)) for piece in column]
        counted = [each for each in weighed if each[0] != start] or weighed
        rules, weights = zip(*counted, strict=True)
        return scale.mean([table.action(rule) for rule in rules], weights)

    return table_of(map_leaves(tree, merge), table.signals, table.domain_upper, table.rules)


def _with_start_of(table: RuleTable, merged: RuleTable, axis: int) -> RuleTable:
    """The merged table with the rule with which `table` begins, if only `axis` set it apart."""
    start = start_rule(table)
    if start is None or guards_of_start(table, start) != [axis]:
        return merged
    _, upper = table.region(start)
    guard = (axis, upper[axis])
    rule = Leaf(table.action(start))
    rest = map_leaves(tree_of(merged), merged.action)
    return table_of(Branch((guard,), (rule, rest)), table.signals, table.domain_upper, table.rules)


@dataclass(frozen=True, slots=True)
class Change:
    """A region in which the first table has one rule and the second has one."""

    before: ReadableRule
    """The region, the first table's action and rule number; the share of its look-ups there."""
    after_rule: int
    after_action: Action
    distance: float
    """Between the two actions, in the coordinates of docs/explanation/simulator.md."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What the second of two tables does differently."""

    rules: int
    """The kind of both tables."""
    signals: tuple[int, ...]
    """Axes of either table."""
    domain_upper: float
    same_regions: bool
    """Whether both divide memory space in the same way."""
    regions: int
    """Pieces that both leave undivided, without those that hold no memory value."""
    changes: tuple[Change, ...]
    """Those of them in which the actions differ, by use times distance, largest first."""
    share_of_lookups: float | None
    """How many of the first table's look-ups meet another action; None without a sample."""
    scores: PairedScores | None
    """Of the first table and the second; None without a sample."""


def compare_tables(first: RuleTable, second: RuleTable, sample: NetworkSample | None) -> Difference:
    """Lays the tables' regions over each other and compares the actions in each piece.

    With a sample, the first table is simulated with its rules cut into these pieces, so that its
    look-ups are counted exactly; without one, changes are ranked by distance alone. Raises
    ExplainError if the tables are too fine or too deep to be laid over each other.
    """
    if first.rules != second.rules:
        raise ExplainError("of the two tables one has absolute rules and one has scale-free rules")
    # Beyond a table's domain its outermost rules go on, so that the larger domain serves both.
    domain_upper = max(first.domain_upper, second.domain_upper)
    signals = sorted({*first.signals, *second.signals})
    pieces = overlay(tree_of(first), tree_of(second), Box.whole(domain_upper), lambda a, b: (a, b))
    actions = map_leaves(pieces, lambda pair: first.action(pair[0]))
    cut = table_of(actions, signals, domain_upper, first.rules)
    before = sample.trial(cut) if sample else None
    after = sample.trial(second) if sample else None
    scale = ActionScale(
        (table.action(rule) for table in (first, second) for rule in range(table.rule_count)),
        first.rules,
    )
    regions, changes = 0, []
    readable = readable_rules(cut, before.rule_uses if before else None)
    for piece, (a, b) in zip(readable, leaves(pieces), strict=True):
        if any(low >= high for low, high in piece.region.values()):
            continue
        regions += 1
        if first.action(a) != second.action(b):
            distance = scale.distance(first.action(a), second.action(b))
            rule = replace(piece, number=a)
            changes.append(Change(rule, b, second.action(b), distance))
    changes.sort(key=_rank)
    return Difference(
        rules=first.rules,
        signals=tuple(signals),
        domain_upper=domain_upper,
        same_regions=_structure(first) == _structure(second),
        regions=regions,
        changes=tuple(changes),
        share_of_lookups=sum(each.before.use_share or 0.0 for each in changes) if sample else None,
        scores=sample.scores(before, after) if sample and before and after else None,
    )


def _rank(change: Change) -> tuple[float, float, int]:
    share = change.before.use_share
    weight = 1.0 if share is None else share
    return (-weight * change.distance, -change.distance, change.before.number)


def _structure(table: RuleTable) -> list[list[tuple[int, float]]]:
    return [thresholds for thresholds, _ in table.nodes()]
