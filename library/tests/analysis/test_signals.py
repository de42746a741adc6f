"""Tests the value of signals: merging rules along a signal's axis."""

from hypothesis import given, settings
from hypothesis import strategies as st

from library.tests.analysis.tables import DOMAIN_UPPER, Memory, memories, small_sample, tables
from library.tests.remycc.tables import six_scale_free_rules
from remy_farm.analysis.explain import (
    columns,
    cut_into_columns,
    merge_columns,
    worth_of_signals,
)
from remy_farm.analysis.trees import ActionScale, leaves
from remy_farm.remycc import start_rule
from remy_proto.v1 import rule_table_pb2
from remy_simulator import RuleTable
from remy_simulator.messages import axis_of

SLOW = (0.5, 1.0, 1.0)
FAST = (1.0, 1.0, 1.0)


def moved(memory: Memory, axis: int, value: float) -> Memory:
    point = list(memory)
    point[axis] = value
    return (point[0], point[1], point[2], point[3])


def merged(table: RuleTable, axis: int) -> RuleTable:
    """Returns the table without a signal, if every piece has the same use."""
    tree = columns(table, axis)
    return merge_columns(table, tree, [1] * sum(map(len, leaves(tree))))


@given(tables(), memories, st.data())
def test_cutting_rules_into_pieces_changes_no_action(
    table: RuleTable, memory: Memory, data: st.DataObject
) -> None:
    axis = data.draw(st.sampled_from(table.signals))
    tree = columns(table, axis)
    cut = cut_into_columns(table, tree, axis)
    pieces = [piece for column in leaves(tree) for piece in column]
    assert cut.rule_count == len(pieces)
    rule = cut.find(memory)
    assert pieces[rule].rule == table.find(memory)
    assert cut.action(rule) == table.action(table.find(memory))


def test_an_extended_signal_can_be_removed() -> None:
    loss_rate = axis_of(rule_table_pb2.SIGNAL_LOSS_RATE)
    nodes = [([(loss_rate, 0.1)], FAST), ([], FAST), ([], SLOW)]
    without = merged(RuleTable([2, loss_rate], nodes), loss_rate)
    assert without.rule_count == 1
    assert SLOW[0] < without.action(0)[0] < FAST[0]


@given(tables(), memories, st.floats(-1, 2 * DOMAIN_UPPER), st.data())
def test_a_merged_table_ignores_the_signal(
    table: RuleTable, memory: Memory, value: float, data: st.DataObject
) -> None:
    axis = data.draw(st.sampled_from(table.signals))
    without = merged(table, axis)
    assert without.signals == table.signals
    assert without.find(memory) == without.find(moved(memory, axis, value))
    assert all(axis != used for thresholds, _ in without.nodes() for used, _ in thresholds)


@given(tables(), memories, st.data())
def test_a_merged_rule_is_the_mean_of_the_rules_along_the_axis(
    table: RuleTable, memory: Memory, data: st.DataObject
) -> None:
    axis = data.draw(st.sampled_from(table.signals))
    starts = {table.region(rule)[0][axis] for rule in range(table.rule_count)}
    met = [table.find(moved(memory, axis, start)) for start in sorted(starts)]
    rules = list(dict.fromkeys(met))
    scale = ActionScale(table.action(rule) for rule in range(table.rule_count))
    expected = scale.mean([table.action(rule) for rule in rules], [1] * len(rules))
    without = merged(table, axis)
    assert without.action(without.find(memory)) == expected


@settings(max_examples=15)
@given(tables(), st.data())
def test_removing_an_unused_signal_changes_nothing(table: RuleTable, data: st.DataObject) -> None:
    axis = data.draw(st.sampled_from(table.signals))
    without = merged(table, axis)
    again = merged(without, axis)
    assert again == without
    sample = small_sample(2)
    assert sample.trial(cut_into_columns(table, columns(table, axis), axis)).digest == (
        sample.trial(table).digest
    )


def test_the_signal_that_decides_actions_is_the_most_valuable() -> None:
    table = RuleTable([0, 2], [([(2, 1.3), (0, 2.0)], FAST), *[([], FAST)] * 4])
    table = table.with_actions([FAST, SLOW, FAST, SLOW])
    study = worth_of_signals(table, small_sample())
    by_axis = {signal.axis: signal for signal in study.signals}
    assert study.signals[0].axis == 2
    assert by_axis[2].scores.difference is not None
    assert by_axis[2].scores.difference.mean < 0
    assert by_axis[0].scores.difference is not None
    assert by_axis[0].scores.difference.mean == 0
    assert by_axis[0].scores.after == study.score
    assert by_axis[0].without.action(0) == FAST


def test_the_start_rule_is_kept_when_any_signal_is_removed() -> None:
    table = six_scale_free_rules()
    study = worth_of_signals(table, small_sample())
    without = {signal.axis: signal.without for signal in study.signals}
    assert study.rules == table.rules
    assert {start_rule(each) for each in without.values()} == {0}
    assert {each.action(0) for each in without.values()} == {table.action(0)}
    # rtt_ratio separates only the start rule, and slow_rec_ratio only ages.
    assert without[2] == without[0] == table
    assert without[3].rule_count == 2
    assert 33 * 0.3 < without[3].action(1)[1] < 33
    assert without[3].action(1)[2] > 0.9
