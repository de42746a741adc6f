"""Tests the cells of rules in reports: regions, actions, uses and ages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.tests.remycc.tables import six_scale_free_rules
from remy_farm.analysis.report import (
    action_cells,
    action_head,
    age_acks,
    region_cells,
    use_cell,
)
from remy_farm.remycc import readable_rules
from remy_proto.v1 import rule_table_pb2
from remy_simulator import RuleTable


def test_region_cells_show_only_existing_bounds() -> None:
    table = RuleTable([0, 2], [([], (0.5, -3.0, 0.25))]).split(0, [(0, 2.0)]).split(1, [(0, 7.0)])
    cells = [region_cells(rule, table.domain_upper) for rule in readable_rules(table)]
    assert cells == [["< 2", "any"], ["2 .. 7", "any"], [">= 7", "any"]]
    assert action_cells(readable_rules(table)[0]) == ("0.5", "-3", "0.25")


def test_use_cells_are_shares_of_all_uses() -> None:
    table = RuleTable([0], [([], (1.0, 1.0, 1.0))]).split(0, [(0, 2.0)])
    assert [use_cell(rule) for rule in readable_rules(table, [3, 1])] == ["75 %", "25 %"]
    assert [use_cell(rule) for rule in readable_rules(table, [3, 0])] == ["100 %", "0"]
    assert [use_cell(rule) for rule in readable_rules(table)] == ["-", "-"]


def test_thresholds_close_to_1_are_shown_with_their_distance() -> None:
    thresholds = (1 - 2.5e-11, 1.0, 1 + 9.3e-10, 1.00001)
    table = RuleTable([2], [([], (1.0, 1.0, 1.0))])
    for number, threshold in enumerate(thresholds):
        table = table.split(number, [(2, threshold)])
    cells = [cell for (cell,) in (region_cells(r, 163840.0) for r in readable_rules(table))]
    assert cells == [
        "< 1 - 2.5e-11",
        "1 - 2.5e-11 .. 1",
        "1 .. 1 + 9.3e-10",
        "1 + 9.3e-10 .. 1.00001",
        ">= 1.00001",
    ]


def test_scale_free_rules_are_shown_in_relative_units() -> None:
    rules = readable_rules(six_scale_free_rules())
    assert action_head(rules[0].rules) == ("window multiple", "increment", "interval")
    assert action_cells(rules[0]) == ("0", "+30 packets", "0.01875 ms")
    assert action_cells(rules[5]) == ("0.7", "+33 %", "0.9 x")
    assert [region_cells(rule, 163840.0) for rule in rules] == [
        ["any", "< 0.5", "any"],
        ["any", ">= 0.5", "age < 5 ACKs"],
        ["any", ">= 0.5", "age 5 .. 10 ACKs"],
        ["any", ">= 0.5", "age 10 .. 20 ACKs"],
        ["any", ">= 0.5", "age 20 .. 40 ACKs"],
        ["any", ">= 0.5", "age >= 40 ACKs"],
    ]


@given(st.integers(2, 1000))
def test_age_is_that_of_packets_at_equal_intervals(age: int) -> None:
    rec_ewma = slow_rec_ewma = 0.0
    for _ in range(age):
        rec_ewma += (3.0 - rec_ewma) / 8
        slow_rec_ewma += (3.0 - slow_rec_ewma) / 256
    assert age_acks(slow_rec_ewma / rec_ewma) == age


@pytest.mark.parametrize("ratio", [0.0, 1 / 32, 0.99, 1.0, 1.3])
def test_a_ratio_without_an_age_is_shown_as_a_ratio(ratio: float) -> None:
    assert age_acks(ratio) is None
    table = RuleTable([3], [([], (1.0, 1.0, 1.0))], rules=rule_table_pb2.RULES_SCALE_FREE)
    if ratio:
        (cell,) = region_cells(readable_rules(table.split(0, [(3, ratio)]))[0], 163840.0)
        assert cell == f"< {ratio:g}"
