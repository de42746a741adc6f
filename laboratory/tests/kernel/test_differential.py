"""Tests that the exported arithmetic equals the simulator's, and that any difference is found."""

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
from remy_laboratory.kernel.fixed_point import IntegerTable, c_header

pytestmark = needs_c


@pytest.mark.parametrize("path", [ABSOLUTE, SCALE_FREE], ids=["absolute", "scale-free"])
def test_no_rule_differs_in_100_000_records(path: Path) -> None:
    table = integers(path)
    differences = compare_compiled(table, c_header(table))
    assert differences.records == 100_000
    assert differences.rules_different == 0
    assert differences.is_same, differences
    assert differences.rules_not_looked_up == ()


@pytest.mark.parametrize("path", [ABSOLUTE, SCALE_FREE], ids=["absolute", "scale-free"])
def test_records_of_another_seed_give_the_same_results(path: Path) -> None:
    table = integers(path)
    assert compare_compiled(table, c_header(table), vectors=20_000, seed=2).is_same


_REMEMBERING = """
name: test
edition: 2
rules: scale_free_remembering
signals: [send_ratio, rtt_ratio, age]
network: {rate_mbps: {log_uniform: [1, 100]}, rtt_ms: 100, senders: 2,
  traffic: {exponential_time: {mean_ms: 1000}, mean_off_ms: 1000}}
"""


def test_averages_that_start_as_means_are_the_same() -> None:
    """The table divides at ages next to those of the first table, which constant intervals reach.

    A connection starts without measurements, so no ACK uses the rule for remembered ones.
    """
    spec = parse_spec(_REMEMBERING)
    table = first_table(spec, ActionSpace(spec.search.joint, spec.rules), 0)
    for rule in (6, 5, 4, 3, 2):
        table = table.split(rule, [(0, 0.9)])
    integer_table = IntegerTable.from_rule_table(table)
    differences = compare_compiled(integer_table, c_header(integer_table))
    assert differences.is_same, differences
    assert differences.rules_not_looked_up == ()
    assert differences.rules_not_used_by_acks == (1,)


@pytest.mark.parametrize("path", published())
def test_published_tables_give_the_same_results(path: Path) -> None:
    table = IntegerTable.from_rule_table(read_remycc(path).table)
    differences = compare_compiled(table, c_header(table), vectors=10_000)
    assert differences.is_same, differences


def mutate_number(text: str, pattern: str, fraction: float, minimum: int) -> str:
    """Increases one number, the first group of a match, by `minimum`, or by 0.1 % if that is 0."""
    matches = list(re.finditer(pattern, text))
    assert len(matches) > 5
    match = matches[int(fraction * len(matches))]
    start, end = match.span(1)
    number = int(match[1])
    return text[:start] + str(number + (minimum or max(abs(number) >> 10, 1))) + text[end:]


@pytest.mark.parametrize("path", [ABSOLUTE, SCALE_FREE], ids=["absolute", "scale-free"])
@pytest.mark.parametrize(
    ("pattern", "minimum"),
    # `minimum` is the increase of the number, for absolute and for scale-free rules.
    [
        (r"\{\{(\d{1,12})ull", (1, 1)),
        (r"\n +\{(-\d+), ", (1, 1)),
        (r"\{(?:\d+ull, )?(\d+)ull, (?:\d+ull, )?-?\d+ll, (?:\d+ull, )?\d+ull\}", (1 << 54, 0)),
        (r"\{(?:\d+ull, ){1,3}(\d+)ll, (?:\d+ull, )?\d+ull\}", (1, 1 << 40)),
        (r"\{(?:\d+ull, ){1,3}-?\d+ll, (?:\d+ull, )?(\d+)ull\}", (0, 0)),
    ],
    ids=["threshold", "child", "multiple", "increment", "interval"],
)
@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9])
def test_one_changed_number_in_the_header_is_found(
    path: Path, pattern: str, minimum: tuple[int, int], fraction: float
) -> None:
    table = integers(path)
    mutated = mutate_number(c_header(table), pattern, fraction, minimum[table.is_scale_free])
    assert not compare_compiled(table, mutated, vectors=3000).is_same


def test_deadband_changes_a_table_that_distinguishes_small_rtt_differences() -> None:
    table = integers(EXACT_CLOCKS / "remycc.json")
    assert compare_compiled(table, c_header(table), vectors=20_000).is_same
    assert not compare_compiled(table, c_header(table, deadband_us=500), vectors=20_000).is_same
