"""The exported arithmetic does what the simulator's does, and a difference is found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from laboratory.tests.kernel.tables import ABSOLUTE, EXACT_CLOCKS, SCALE_FREE, integers, needs_c
from library.tests.remycc.tables import published
from remy_farm.designer.actions import ActionSpace, first_table
from remy_farm.remycc import read_remycc
from remy_farm.specification import parse_spec
from remy_laboratory.kernel.differential import compare_compiled
from remy_laboratory.kernel.fixed_point import IntegerTable, header

pytestmark = needs_c


@pytest.mark.parametrize("path", [ABSOLUTE, SCALE_FREE], ids=["absolute", "scale-free"])
def test_no_rule_differs_in_100_000_vectors(path: Path) -> None:
    table = integers(path)
    found = compare_compiled(table, header(table))
    assert found.records == 100_000
    assert found.rules_different == 0
    assert found.is_same, found
    assert found.rules_not_looked_up == ()


@pytest.mark.parametrize("path", [ABSOLUTE, SCALE_FREE], ids=["absolute", "scale-free"])
def test_other_vectors_come_out_alike(path: Path) -> None:
    table = integers(path)
    assert compare_compiled(table, header(table), vectors=20_000, seed=2).is_same


_REMEMBERING = """
name: test
edition: 2
rules: scale_free_remembering
signals: [send_ratio, rtt_ratio, age]
network: {rate_mbps: {log_uniform: [1, 100]}, rtt_ms: 100, senders: 2,
  traffic: {exponential_time: {mean_ms: 1000}, mean_off_ms: 1000}}
"""


def test_averages_that_are_means_while_they_are_young_come_out_alike() -> None:
    """Divided at ages beside the first table's, whose places even paces come by. A connection
    begins with nothing, so that the rule of who remembers is used by no ACK."""
    spec = parse_spec(_REMEMBERING)
    table = first_table(spec, ActionSpace(spec.search.joint, spec.rules), 0)
    for rule in (6, 5, 4, 3, 2):
        table = table.split(rule, [(0, 0.9)])
    found = compare_compiled(IntegerTable.of(table), header(IntegerTable.of(table)))
    assert found.is_same, found
    assert found.rules_not_looked_up == ()
    assert found.rules_not_used_by_acks == (1,)


@pytest.mark.parametrize("path", published())
def test_published_tables_come_out_alike(path: Path) -> None:
    table = IntegerTable.of(read_remycc(path).table)
    found = compare_compiled(table, header(table), vectors=10_000)
    assert found.is_same, found


def changed(text: str, pattern: str, place: float, least: int) -> str:
    """The text with one number, the first group of a match, larger by a thousandth or `least`."""
    matches = list(re.finditer(pattern, text))
    assert len(matches) > 5
    match = matches[int(place * len(matches))]
    start, end = match.span(1)
    number = int(match[1])
    return text[:start] + str(number + (least or max(abs(number) >> 10, 1))) + text[end:]


@pytest.mark.parametrize("path", [ABSOLUTE, SCALE_FREE], ids=["absolute", "scale-free"])
@pytest.mark.parametrize(
    ("pattern", "least"),
    # What of the number is changed at least, of absolute rules and of scale-free ones.
    [
        (r"\{\{(\d{1,12})ull", (1, 1)),
        (r"\n +\{(-\d+), ", (1, 1)),
        (r"\{(?:\d+ull, )?(\d+)ull, (?:\d+ull, )?-?\d+ll, (?:\d+ull, )?\d+ull\}", (1 << 54, 0)),
        (r"\{(?:\d+ull, ){1,3}(\d+)ll, (?:\d+ull, )?\d+ull\}", (1, 1 << 40)),
        (r"\{(?:\d+ull, ){1,3}-?\d+ll, (?:\d+ull, )?(\d+)ull\}", (0, 0)),
    ],
    ids=["threshold", "child", "multiple", "increment", "interval"],
)
@pytest.mark.parametrize("place", [0.1, 0.5, 0.9])
def test_one_mutated_entry_fails(
    path: Path, pattern: str, least: tuple[int, int], place: float
) -> None:
    table = integers(path)
    mutated = changed(header(table), pattern, place, least[table.is_scale_free])
    assert not compare_compiled(table, mutated, vectors=3000).is_same


def test_a_deadband_makes_a_difference_to_a_table_that_tells_the_smallest_rtt() -> None:
    table = integers(EXACT_CLOCKS / "remycc.json")
    assert compare_compiled(table, header(table), vectors=20_000).is_same
    assert not compare_compiled(table, header(table, deadband_us=500), vectors=20_000).is_same
