import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from library.tests.analysis.tables import small_sample, tables
from library.tests.remycc.tables import six_scale_free_rules
from remy_farm.analysis.merging import is_without_loss, merge_siblings
from remy_farm.evaluation.measures import Estimate
from remy_simulator import RuleTable
from remy_simulator.messages import Action

CAREFUL = (0.5, 1.0, 1.0)
BOLD = (1.0, 1.0, 1.0)


@settings(max_examples=10)
@given(tables(actions=st.just(Action(0.9, 3.0, 1.5))))
def test_rules_that_do_the_same_are_merged_and_change_no_result(table: RuleTable) -> None:
    sample = small_sample(2)
    merging = merge_siblings(table, sample)
    assert merging.table.rule_count == 1
    assert all(merge.accepted for merge in merging.merges)
    assert sum(merge.rules - 1 for merge in merging.merges) == table.rule_count - 1
    assert sample.trial(merging.table).digest == sample.trial(table).digest


@settings(max_examples=10)
@given(tables())
def test_each_accepted_merge_leaves_one_rule_of_several(table: RuleTable) -> None:
    merging = merge_siblings(table, small_sample(2))
    accepted = [merge for merge in merging.merges if merge.accepted]
    gone = sum(merge.rules - 1 for merge in accepted)
    assert merging.table.rule_count == table.rule_count - gone
    if not accepted:
        assert merging.table == table


def test_what_matters_is_kept_apart_and_what_does_not_is_merged() -> None:
    # Below rtt_ratio 1.3 two equal rules, at and above it another action.
    table = RuleTable(
        [0, 2],
        [
            ([(2, 1.3)], BOLD),
            ([(0, 2.0)], BOLD),
            ([], BOLD),
            ([], BOLD),
            ([], CAREFUL),
        ],
    )
    merging = merge_siblings(table, small_sample())
    same, different = merging.merges
    assert same.accepted
    assert same.difference is not None
    assert same.difference.mean == 0
    assert same.rule.region["rtt_ratio"][1] == 1.3
    assert not different.accepted
    assert merging.table == RuleTable([0, 2], [([(2, 1.3)], BOLD), ([], BOLD), ([], CAREFUL)])
    assert merging.fresh.before is not None
    assert merging.fresh.before == merging.fresh.after
    assert merging.fresh.before != merging.scores.before


def test_the_rule_that_scale_free_rules_begin_with_is_never_merged() -> None:
    table = six_scale_free_rules()
    alike = table.with_actions([table.action(0), *[table.action(5)] * 5])
    merging = merge_siblings(alike, small_sample())
    assert merging.table == RuleTable(
        [0, 2, 3],
        [([(2, 0.5)], BOLD), ([], table.action(0)), ([], table.action(5))],
        rules=table.rules,
    )
    assert [merge.rules for merge in merging.merges] == [2, 2, 2, 2]
    assert all(merge.rule.is_relative for merge in merging.merges)


def test_a_rule_is_kept_while_it_is_worth_its_price() -> None:
    table = RuleTable([0, 2], [([(2, 1.3)], BOLD), ([], BOLD), ([], CAREFUL)])
    sample = small_sample()
    (merge,) = merge_siblings(table, sample).merges
    assert merge.difference is not None
    worth = -merge.difference.mean
    assert worth > 0
    kept, sold = (merge_siblings(table, sample, price=worth * part) for part in (0.99, 1.01))
    assert kept.table == table
    assert sold.table.rule_count == 1
    assert sold.scores.difference == merge.difference


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
def test_a_loss_of_two_standard_errors_may_be_chance(
    difference: Estimate | None, expected: bool
) -> None:
    assert is_without_loss(difference) is expected
