"""Tests readable rules: regions, actions, uses and the start rule."""

from __future__ import annotations

import pytest
from hypothesis import given

from library.tests.remycc.tables import remyccs, six_scale_free_rules
from remy_farm.remycc import ReadableRule, RemyCC, readable_rules, start_rule
from remy_proto.v1 import rule_table_pb2
from remy_simulator import RuleTable

_TABLE = RuleTable([0, 2], [([], (1.0, 4.0, 3.0))]).split(0, [(0, 2.5), (2, 1.5)])


def test_rules_have_their_region_action_and_use() -> None:
    rules = readable_rules(_TABLE.with_action(3, (0.5, -1.0, 0.25)), uses=[5, 0, 10, 5])
    assert rules[0] == ReadableRule(
        number=0,
        region={"send_ewma": (0, 2.5), "rtt_ratio": (0, 1.5)},
        window_multiple=1,
        window_increment=4,
        intersend_ms=3,
        use_share=0.25,
    )
    assert rules[3] == ReadableRule(
        number=3,
        region={"send_ewma": (2.5, 163840), "rtt_ratio": (1.5, 163840)},
        window_multiple=0.5,
        window_increment=-1,
        intersend_ms=0.25,
        use_share=0.25,
    )


def test_use_share_is_none_if_unknown_and_0_without_look_ups() -> None:
    assert {rule.use_share for rule in readable_rules(_TABLE)} == {None}
    assert {rule.use_share for rule in readable_rules(_TABLE, [0, 0, 0, 0])} == {0.0}


def test_another_number_of_uses_is_refused() -> None:
    with pytest.raises(ValueError, match="3 use counts were given for a table of 4 rules"):
        readable_rules(_TABLE, [1, 2, 3])


def test_only_the_start_rule_of_a_scale_free_table_is_not_relative() -> None:
    rules = readable_rules(six_scale_free_rules())
    assert [rule.is_relative for rule in rules] == [False, True, True, True, True, True]
    assert {rule.rules for rule in rules} == {rule_table_pb2.RULES_SCALE_FREE}
    assert list(rules[0].region) == ["send_ratio", "rtt_ratio", "slow_rec_ratio"]
    assert not any(rule.is_relative for rule in readable_rules(_TABLE))


@pytest.mark.parametrize(
    ("axis", "threshold", "start"),
    [(2, 1.0, 0), (2, 1.01, None), (3, 1 / 32, 0), (3, 0.04, None), (0, 0.01, None)],
)
def test_a_start_rule_has_a_threshold_below_all_measured_values(
    axis: int, threshold: float, start: int | None
) -> None:
    table = RuleTable([0, 2, 3], [([], (1.0, 4.0, 3.0))], rules=rule_table_pb2.RULES_SCALE_FREE)
    assert start_rule(table.split(0, [(axis, threshold)])) == start
    assert start_rule(table) is None


@given(remyccs())
def test_the_lower_corner_of_a_region_belongs_to_its_rule(remycc: RemyCC) -> None:
    names = ["send_ewma", "rec_ewma", "rtt_ratio", "slow_rec_ewma"]
    for rule in readable_rules(remycc.table):
        memory = [rule.region.get(name, (0.0, 0.0))[0] for name in names]
        assert remycc.table.find(memory) == rule.number
