"""What each signal of a table is worth: the loss when the table cannot see it.

A table without a signal is made by merging its cells. For every point of the other signals' space,
the rules met on the way along the signal's axis become one, whose action is their mean weighted by
use. Regions on both sides of a threshold are laid over each other for that, so that the merged
table still divides wherever the table did on another signal. How often each piece is used is
measured, with the table's rules cut into these pieces: they act as before, so that nothing else
changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remy_services.explain.actions import ActionScale
from remy_services.explain.bench import Bench
from remy_services.explain.progress import OnProgress, Progress, unheard
from remy_services.explain.tree import (
    Action,
    Box,
    Branch,
    Leaf,
    Tree,
    map_leaves,
    overlay,
    table_of,
    tree_of,
    without_axis,
)
from remy_services.report.trial import Estimate
from remy_simulator import RuleTable


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
    score_without: Estimate | None
    """On the specimens that the score with it is from."""
    difference: Estimate | None
    """Score without the signal minus score with it; negative if the signal is worth something."""
    without: RuleTable


@dataclass(frozen=True, slots=True)
class SignalStudy:
    """What the signals of a table are worth."""

    score: Estimate | None
    """Of the table as it is."""
    signals: tuple[SignalWorth, ...]
    """Each signal of the table, the one that is worth most first."""


def worth_of_signals(
    table: RuleTable, bench: Bench, on_progress: OnProgress = unheard
) -> SignalStudy:
    """Takes each signal of the table away, one at a time.

    Raises ExplainError for a table whose cells are too fine or too deep to be merged.
    """
    original = bench.trial(table)
    worth = []
    for tried, axis in enumerate(table.signals):
        on_progress(Progress("signals", tried, len(table.signals)))
        tree = columns(table, axis)
        uses = bench.trial(cut_into_columns(table, tree, axis)).rule_uses
        without = merge_columns(table, tree, uses)
        trial = bench.trial(without)
        difference = bench.difference(original, trial)
        worth.append(SignalWorth(axis, trial.summary().score, difference, without))
    worth.sort(key=lambda signal: signal.difference.mean if signal.difference else 0.0)
    return SignalStudy(original.summary().score, tuple(worth))


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
            overlay(parts[low], parts[low | side], box.child(rest, position), _concatenate)
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

    return table_of(cut(tree), table.signals, table.domain_upper)


def merge_columns(table: RuleTable, tree: Tree[Column], uses: Sequence[int]) -> RuleTable:
    """The table with each column made one rule; `uses` are those of the pieces, in their order."""
    scale = ActionScale(table.action(rule) for rule in range(table.rule_count))
    remaining = iter(uses)

    def merge(column: Column) -> Action:
        weights = [next(remaining) for _ in column]
        return scale.mean([table.action(piece.rule) for piece in column], weights)

    return table_of(map_leaves(tree, merge), table.signals, table.domain_upper)


def _concatenate(below: Column, above: Column) -> Column:
    return below + above
