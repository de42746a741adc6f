"""Tests merging sibling rules."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from library.tests.analysis.tables import small_sample, tables
from library.tests.remycc.tables import six_scale_free_rules
from remy_farm.analysis.merging import is_without_loss, merge_siblings
from remy_farm.evaluation.measures import Estimate
from remy_simulator import RuleTable
from remy_simulator.messages import Action

SLOW = (0.5, 1.0, 1.0)
FAST = (1.0, 1.0, 1.0)


@settings(max_examples=10)
@given(tables(actions=st.just(Action(0.9, 3.0, 1.5))))
def test_rules_with_the_same_action_are_merged_without_effect(table: RuleTable) -> None:
    sample = small_sample(2)
    merging = merge_siblings(table, sample)
    assert merging.table.rule_count == 1
    assert all(merge.accepted for merge in merging.merges)
    assert sum(merge.rules - 1 for merge in merging.merges) == table.rule_count - 1
    assert sample.trial(merging.table).digest == sample.trial(table).digest


@settings(max_examples=10)
@given(tables())
def test_each_accepted_merge_replaces_its_rules_by_one(table: RuleTable) -> None:
    merging = merge_siblings(table, small_sample(2))
    accepted = [merge for merge in merging.merges if merge.accepted]
    removed = sum(merge.rules - 1 for merge in accepted)
    assert merging.table.rule_count == table.rule_count - removed
    if not accepted:
        assert merging.table == table


def test_the_merged_table_keeps_the_path_model() -> None:
    model = (16.0, 0.03125, 6.0, 0.875, 2.0, 50.0, 0.5, 1.75, 1.1)
    table = RuleTable([2], [([(2, 1.3)], FAST), ([], FAST), ([], FAST)], path_model=model)
    merging = merge_siblings(table, small_sample(2))
    assert merging.table == RuleTable([2], [([], FAST)], path_model=model)


def test_only_rules_that_can_be_merged_without_loss_are_merged() -> None:
    # Two rules below rtt_ratio 1.3 are equal; the third has another action.
    table = RuleTable(
        [0, 2],
        [
            ([(2, 1.3)], FAST),
            ([(0, 2.0)], FAST),
            ([], FAST),
            ([], FAST),
            ([], SLOW),
        ],
    )
    merging = merge_siblings(table, small_sample())
    same, different = merging.merges
    assert same.accepted
    assert same.difference is not None
    assert same.difference.mean == 0
    assert same.rule.region["rtt_ratio"][1] == 1.3
    assert not different.accepted
    assert merging.table == RuleTable([0, 2], [([(2, 1.3)], FAST), ([], FAST), ([], SLOW)])
    assert merging.fresh.before is not None
    assert merging.fresh.before == merging.fresh.after
    assert merging.fresh.before != merging.scores.before


def test_the_start_rule_is_never_merged() -> None:
    table = six_scale_free_rules()
    alike = table.with_actions([table.action(0), *[table.action(5)] * 5])
    merging = merge_siblings(alike, small_sample())
    assert merging.table == RuleTable(
        [0, 2, 3],
        [([(2, 0.5)], FAST), ([], table.action(0)), ([], table.action(5))],
        rules=table.rules,
    )
    assert [merge.rules for merge in merging.merges] == [2, 2, 2, 2]
    assert all(merge.rule.is_relative for merge in merging.merges)


def test_with_a_price_a_rule_is_merged_if_it_gains_less() -> None:
    table = RuleTable([0, 2], [([(2, 1.3)], FAST), ([], FAST), ([], SLOW)])
    sample = small_sample()
    (merge,) = merge_siblings(table, sample).merges
    assert merge.difference is not None
    loss = -merge.difference.mean
    assert loss > 0
    low, high = (merge_siblings(table, sample, price=loss * factor) for factor in (0.99, 1.01))
    assert low.table == table
    assert high.table.rule_count == 1
    assert high.scores.difference == merge.difference


@pytest.mark.parametrize(
    ("difference", "expected"),
    [
        (None, False),
        (Estimate(0.0, 0.0, 3), True),
        (Estimate(0.1, 0.0, 3), True),
        (Estimate(-0.2, 0.1, 3), True),
        (Estimate(-0.21, 0.1, 3), False),
        (Estimate(0.0, None, 1), True),
        (Estimate(-0.01, None, 1), False),
    ],
)
def test_a_loss_of_at_most_two_standard_errors_is_accepted(
    difference: Estimate | None, expected: bool
) -> None:
    assert is_without_loss(difference) is expected
