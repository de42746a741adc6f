"""Tests rule tables as trees, and overlays of two trees."""

from pathlib import Path

import pytest
from hypothesis import given

from library.tests.analysis.tables import DOMAIN_UPPER, Memory, memories, tables
from library.tests.remycc.tables import published
from remy_farm.analysis.trees import (
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
)
from remy_farm.remycc import read_remycc
from remy_simulator import RuleTable
from remy_simulator.messages import Action

WHOLE = Box.whole(DOMAIN_UPPER)


def staircase(axis: int, steps: int) -> Tree[int]:
    """Returns a tree of depth `steps`, with one threshold per level."""
    tree: Tree[int] = Leaf(0)
    for step in range(steps, 0, -1):
        tree = Branch(((axis, DOMAIN_UPPER * step / (steps + 1)),), (Leaf(step), tree))
    return tree


@given(tables())
def test_a_tree_converts_back_to_its_table(table: RuleTable) -> None:
    tree = map_leaves(tree_of(table), table.action)
    assert table_of(tree, table.signals, table.domain_upper) == table


@pytest.mark.parametrize("path", published())
def test_the_overlay_of_a_published_table_with_itself_is_unchanged(path: Path) -> None:
    table = read_remycc(path).table
    tree = tree_of(table)
    overlaid = overlay(tree, tree, Box.whole(table.domain_upper), lambda a, b: (a, b))
    again = map_leaves(overlaid, lambda pair: table.action(pair[0]))
    assert table_of(again, table.signals, table.domain_upper) == table
    for a, b in leaves(overlaid):
        lower, upper = table.region(a)
        assert a == b or any(low == high for low, high in zip(lower, upper, strict=True))


@given(tables(), tables(), memories)
def test_a_piece_of_an_overlay_has_the_rules_of_both_trees(
    first: RuleTable, second: RuleTable, memory: Memory
) -> None:
    overlaid = overlay(tree_of(first), tree_of(second), WHOLE, lambda a, b: (a, b))
    any_action = Action(1.0, 1.0, 1.0)
    pieces = table_of(map_leaves(overlaid, lambda _: any_action), range(4), DOMAIN_UPPER)
    rules = list(leaves(overlaid))[pieces.find(memory)]
    assert rules == (first.find(memory), second.find(memory))


def test_an_overlay_of_too_many_pieces_is_refused() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    plane = overlay(staircase(0, 50), staircase(1, 50), WHOLE, add)
    assert len(list(leaves(plane))) == 51 * 51
    with pytest.raises(ExplainError, match="more than 100000 pieces"):
        overlay(plane, staircase(2, 50), WHOLE, add)


def test_a_tree_too_deep_for_a_table_is_refused() -> None:
    deep = map_leaves(staircase(0, 65), lambda _: Action(1.0, 1.0, 1.0))
    with pytest.raises(ExplainError, match="64"):
        table_of(deep, [0], DOMAIN_UPPER)
