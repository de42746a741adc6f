"""Tests regions: the rules below each inner node of a table."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from remy_farm.designer.joint.gradient import Regions
from remy_simulator import RuleTable

_ACTION = (1.0, 1.0, 3.0)
_CHOICES = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True), st.sets(st.integers(0, 2), min_size=1), st.floats(0, 1)
    ),
    max_size=8,
)


def _table(choices: list[tuple[float, set[int], float]]) -> RuleTable:
    """Returns a table split by `choices`: (rule, axes, threshold), rule and threshold as shares."""
    table = RuleTable([0, 1, 2], [([], _ACTION)])
    for share, axes, fraction in choices:
        rule = int(share * table.rule_count)
        lower, upper = table.region(rule)
        points = [(axis, lower[axis] + fraction * (upper[axis] - lower[axis])) for axis in axes]
        inside = [(axis, at) for axis, at in points if lower[axis] < at < upper[axis]]
        if inside:
            table = table.split(rule, inside)
    return table


def _below(table: RuleTable) -> list[list[int]]:
    """Returns the rules below each inner node, in pre-order, by a walk of the tree."""
    nodes = iter(table.nodes())
    below: list[list[int]] = []
    rules = iter(range(table.rule_count))

    def walk() -> list[int]:
        thresholds, _ = next(nodes)
        if not thresholds:
            return [next(rules)]
        index = len(below)
        below.append([])
        below[index] = [rule for _ in range(2 ** len(thresholds)) for rule in walk()]
        return below[index]

    walk()
    return below


@given(_CHOICES)
def test_regions_have_the_rules_of_a_tree_walk(
    choices: list[tuple[float, set[int], float]],
) -> None:
    table = _table(choices)
    ranges = Regions.of(table).ranges
    assert [list(range(first, end)) for first, end in ranges] == _below(table)


@given(_CHOICES, st.integers(0, 2**32 - 1))
def test_add_to_rules_gives_the_bits_of_plain_loops(
    choices: list[tuple[float, set[int], float]], seed: int
) -> None:
    table = _table(choices)
    regions, below = Regions.of(table), _below(table)
    random = np.random.default_rng(seed)
    by_rule = random.normal(size=(table.rule_count, 3))
    by_region = random.normal(size=(len(below), 3))

    moved = by_rule.copy()
    for row, rules in zip(by_region, below, strict=True):
        for rule in rules:
            moved[rule] = moved[rule] + row
    assert (regions.add_to_rules(by_region, by_rule) == moved).all()


def test_a_table_of_one_rule_has_no_regions() -> None:
    regions = Regions.of(_table([]))
    assert regions.ranges == ()
    assert (regions.add_to_rules(np.ones((0, 3)), np.ones((1, 3))) == 1).all()
