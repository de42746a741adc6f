"""Explains rule tables: the value of each signal, and the differences between two tables.

Everything that is measured goes through a `NetworkSample`, which holds the evaluator.
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
from remy_farm.remycc import ReadableRule, readable_rules, start_rule, start_rule_guards
from remy_proto.v1 import spec_pb2
from remy_simulator import RuleTable
from remy_simulator.messages import Action

OnProgress = Callable[[str, int, int], object]
"""Called before each table of a study is evaluated.

The arguments are the part of the study, the number of tables of that part that have been evaluated,
and the total number of them. An exception ends the study.
"""


def no_progress(*_: object) -> None:
    """Ignores the progress of a study."""


# Random-stream key of the fresh specimens, on which the result of a choice is measured again.
_FRESH = 0x6672657368


@dataclass(frozen=True, slots=True)
class PairedScores:
    """The scores of two tables on the same specimens."""

    before: Estimate | None
    after: Estimate | None
    difference: Estimate | None
    """Mean over specimens of after minus before; None if no specimen has both scores."""


@dataclass(frozen=True)
class NetworkSample:
    """A sample of a specification's networks, and the evaluator that simulates on them.

    `remy-farm evaluate` draws the same networks with the same seed.
    """

    spec: spec_pb2.DesignSpec
    seed: int
    specimens: int
    evaluate: Evaluate

    def trial(self, table: RuleTable) -> Trial:
        """Evaluates a table on every specimen."""
        return evaluate_table(
            self.spec, table, seed=self.seed, specimens=self.specimens, evaluate=self.evaluate
        )

    def scores(self, before: Trial, after: Trial) -> PairedScores:
        """Compares the scores of two trials on this sample."""
        difference = Gain(before, after, self.seed).score()
        return PairedScores(before.summary().score, after.summary().score, difference)

    def fresh(self) -> NetworkSample:
        """Returns a sample of the same number of other specimens."""
        return replace(self, seed=remy_simulator.mix(self.seed, _FRESH))


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of a rule's region with lower <= signal < upper."""

    lower: float
    upper: float
    rule: int


Column = tuple[Piece, ...]
"""The pieces along a signal's axis for one region of the other signals, ascending, no gaps."""


@dataclass(frozen=True, slots=True)
class SignalWorth:
    """The scores of a table with and without one of its signals, on the same specimens."""

    axis: int
    scores: PairedScores
    """Before: with the signal; after: without it. A useful signal has a negative difference."""
    without: RuleTable
    """The table without the signal."""


@dataclass(frozen=True, slots=True)
class SignalStudy:
    """The value of each signal of a table."""

    rules: int
    """Kind of the table's rules."""
    score: Estimate | None
    """Score of the original table."""
    signals: tuple[SignalWorth, ...]
    """All signals of the table, the most valuable first."""


def worth_of_signals(
    table: RuleTable, sample: NetworkSample, on_progress: OnProgress = no_progress
) -> SignalStudy:
    """Measures the value of each signal by removing it from the table.

    To remove a signal, the rules along its axis are merged for every region of the other signals.
    The merged rule has the mean of their actions, weighted by use. The use of each piece is
    measured with a table whose rules are cut into these pieces, which acts like the original one.
    The start rule of scale-free rules has other units, so it remains a separate rule.

    Raises ExplainError if the table has too many or too deep regions to be merged.
    """
    original = sample.trial(table)
    worth = []
    for done, axis in enumerate(table.signals):
        on_progress("signals", done, len(table.signals))
        tree = columns(table, axis)
        uses = sample.trial(cut_into_columns(table, tree, axis)).rule_uses
        without = _with_start_of(table, merge_columns(table, tree, uses), axis)
        scores = sample.scores(original, sample.trial(without))
        worth.append(SignalWorth(axis, scores, without))
    worth.sort(key=lambda each: each.scores.difference.mean if each.scores.difference else 0.0)
    return SignalStudy(table.rules, original.summary().score, tuple(worth))


def columns(table: RuleTable, axis: int) -> Tree[Column]:
    """Returns the table as a tree over its other signals; each leaf has a column along `axis`."""

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
    """Returns the table with its rules cut into the pieces of the columns, in their order."""

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

    return _like(table, cut(tree))


def merge_columns(table: RuleTable, tree: Tree[Column], uses: Sequence[int]) -> RuleTable:
    """Returns the table with each column merged into one rule.

    `uses` holds the uses of the pieces, in their order. The start rule of a scale-free table is
    left out of the means of other rules.
    """
    start = start_rule(table)
    scale = ActionScale((table.action(rule) for rule in range(table.rule_count)), table.rules)
    remaining = iter(uses)

    def merge(column: Column) -> Action:
        weighted = [(piece.rule, next(remaining)) for piece in column]
        counted = [each for each in weighted if each[0] != start] or weighted
        rules, weights = zip(*counted, strict=True)
        return scale.mean([table.action(rule) for rule in rules], weights)

    return _like(table, map_leaves(tree, merge))


def _with_start_of(table: RuleTable, merged: RuleTable, axis: int) -> RuleTable:
    """Returns the merged table with the start rule of `table`, if only `axis` separated it."""
    start = start_rule(table)
    if start is None or start_rule_guards(table, start) != [axis]:
        return merged
    _, upper = table.region(start)
    guard = (axis, upper[axis])
    rule = Leaf(table.action(start))
    rest = map_leaves(tree_of(merged), merged.action)
    return _like(table, Branch((guard,), (rule, rest)))


def _like(table: RuleTable, tree: Tree[Action]) -> RuleTable:
    """Returns the table of another tree, which has everything else of `table`."""
    return table_of(tree, table.signals, table.domain_upper, table.rules, table.path_model)


@dataclass(frozen=True, slots=True)
class Change:
    """A region in which two tables have different actions."""

    before: ReadableRule
    """The region, with the first table's rule number and action, and its share of look-ups."""
    after_rule: int
    """Number of the second table's rule in the region."""
    after_action: Action
    distance: float
    """Distance between the two actions in the coordinates of docs/explanation/simulator.md."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences of a second table from a first one."""

    rules: int
    """Kind of both tables' rules."""
    signals: tuple[int, ...]
    """Axes that at least one of the tables uses."""
    domain_upper: float
    same_regions: bool
    """Whether both tables have the same regions."""
    same_path_model: bool
    """Whether both tables have the same path model, or none."""
    regions: int
    """Number of regions of the overlaid tables, without empty ones."""
    changes: tuple[Change, ...]
    """Regions with different actions, sorted by use times distance, largest first."""
    share_of_lookups: float | None
    """Share of the first table's look-ups in these regions; None without a sample."""
    scores: PairedScores | None
    """Scores of the first and the second table; None without a sample."""


def compare_tables(first: RuleTable, second: RuleTable, sample: NetworkSample | None) -> Difference:
    """Overlays the regions of two tables and compares the actions in each piece.

    With a sample, the first table is simulated with its rules cut into these pieces, which counts
    its look-ups exactly. Without one, changes are sorted by distance only. Raises ExplainError if
    the overlay has too many or too deep regions.
    """
    if first.rules != second.rules:
        raise ExplainError("of the two tables one has absolute rules and one has scale-free rules")
    # The outermost rules extend beyond a table's domain, so both tables can use the larger one.
    domain_upper = max(first.domain_upper, second.domain_upper)
    signals = sorted({*first.signals, *second.signals})
    pieces = overlay(tree_of(first), tree_of(second), Box.whole(domain_upper), lambda a, b: (a, b))
    actions = map_leaves(pieces, lambda pair: first.action(pair[0]))
    cut = table_of(actions, signals, domain_upper, first.rules, first.path_model)
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
        same_path_model=first.path_model == second.path_model,
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
