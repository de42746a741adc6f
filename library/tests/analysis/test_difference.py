"""Tests the comparison of two tables."""

import pytest
from hypothesis import given

from library.tests.analysis.tables import small_sample, tables
from library.tests.remycc.tables import six_scale_free_rules
from remy_farm.analysis.explain import compare_tables
from remy_farm.analysis.trees import ExplainError
from remy_simulator import RuleTable

TABLE = RuleTable([0, 2], [([], (0.9, 4.0, 1.0))]).split(0, [(0, 1.0), (2, 1.2)])


@given(tables(), tables())
def test_every_change_is_a_region_with_different_actions(
    first: RuleTable, second: RuleTable
) -> None:
    difference = compare_tables(first, second, None)
    assert difference.share_of_lookups is None
    assert difference.scores is None
    for change in difference.changes:
        memory = [0.0] * 4
        for axis, (low, _) in zip(difference.signals, change.before.region.values(), strict=True):
            memory[axis] = low
        assert change.before.number == first.find(memory)
        assert change.after_rule == second.find(memory)
        assert first.action(change.before.number) != second.action(change.after_rule)


@given(tables())
def test_a_table_does_not_differ_from_itself(table: RuleTable) -> None:
    difference = compare_tables(table, table, None)
    assert difference.same_regions
    assert difference.changes == ()


def test_another_path_model_is_a_difference_but_no_change_of_rules() -> None:
    model = (16.0, 0.03125, 6.0, 0.875, 2.0, 50.0, 0.5, 1.75, 1.1)
    other = TABLE.with_path_model(model)
    difference = compare_tables(TABLE, other, None)
    assert not difference.same_path_model
    assert difference.changes == ()
    assert compare_tables(other, other, None).same_path_model


def test_one_changed_rule_is_the_one_change() -> None:
    sample = small_sample()
    uses = sample.trial(TABLE).rule_uses
    difference = compare_tables(TABLE, TABLE.with_action(1, (0.5, 1.0, 2.0)), sample)
    (change,) = difference.changes
    assert difference.same_regions
    assert difference.regions == 4
    assert (change.before.number, change.after_rule) == (1, 1)
    assert change.after_action == (0.5, 1.0, 2.0)
    assert difference.share_of_lookups == pytest.approx(uses[1] / sum(uses))
    assert difference.scores is not None
    assert difference.scores.before == sample.trial(TABLE).summary().score
    assert difference.scores.difference is not None
    assert difference.scores.difference.mean != 0


def test_a_split_with_the_same_actions_is_no_change() -> None:
    split = TABLE.split(3, [(0, 3.0), (2, 2.0)])
    wider = RuleTable([0, 2], split.nodes(), 2 * TABLE.domain_upper)
    difference = compare_tables(TABLE, wider, small_sample())
    assert not difference.same_regions
    assert difference.regions == 7
    assert difference.changes == ()
    assert difference.share_of_lookups == 0
    assert difference.scores is not None
    assert difference.scores.difference is not None
    assert difference.scores.difference.mean == 0


def test_the_largest_changes_come_first() -> None:
    uses = small_sample().trial(TABLE).rule_uses
    most, second = sorted(range(4), key=lambda rule: -uses[rule])[:2]
    slightly, strongly = (0.89, 4.0, 1.0), (0.2, 4.0, 3.0)
    other = TABLE.with_action(most, strongly).with_action(second, slightly)
    changes = compare_tables(TABLE, other, small_sample()).changes
    assert [change.before.number for change in changes] == [most, second]
    swapped = TABLE.with_action(most, slightly).with_action(second, strongly)
    unweighted = compare_tables(TABLE, swapped, None).changes
    assert [change.before.number for change in unweighted] == [second, most]


def test_changes_of_scale_free_rules_tell_whether_they_are_relative() -> None:
    table = six_scale_free_rules()
    other = table.with_action(0, (0.0, 10.0, 1.0)).with_action(5, (0.7, 30.0, 1.0))
    difference = compare_tables(table, other, small_sample())
    assert difference.regions == 6
    assert {change.before.number: change.before.is_relative for change in difference.changes} == {
        0: False,
        5: True,
    }
    assert difference.scores is not None
    assert difference.scores.difference is not None
    assert difference.scores.difference.mean != 0


def test_rules_of_two_kinds_cannot_be_compared() -> None:
    with pytest.raises(ExplainError, match="one has absolute rules and one has scale-free rules"):
        compare_tables(TABLE, six_scale_free_rules(), None)
