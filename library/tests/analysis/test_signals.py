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

CAREFUL = (0.5, 1.0, 1.0)
BOLD = (1.0, 1.0, 1.0)


def moved(memory: Memory, axis: int, value: float) -> Memory:
    point = list(memory)
    point[axis] = value
    return (point[0], point[1], point[2], point[3])


def merged(table: RuleTable, axis: int) -> RuleTable:
    """Without a signal, if every piece is used equally."""
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


def test_a_signal_beyond_the_first_four_is_taken_out_like_another() -> None:
    loss_rate = axis_of(rule_table_pb2.SIGNAL_LOSS_RATE)
    nodes = [([(loss_rate, 0.1)], BOLD), ([], BOLD), ([], CAREFUL)]
    without = merged(RuleTable([2, loss_rate], nodes), loss_rate)
    assert without.rule_count == 1
    assert CAREFUL[0] < without.action(0)[0] < BOLD[0]


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
def test_a_signal_that_changes_no_action_is_worth_nothing(
    table: RuleTable, data: st.DataObject
) -> None:
    axis = data.draw(st.sampled_from(table.signals))
    blind = merged(table, axis)
    again = merged(blind, axis)
    assert again == blind
    sample = small_sample(2)
    assert sample.trial(cut_into_columns(table, columns(table, axis), axis)).digest == (
        sample.trial(table).digest
    )


def test_the_signal_that_a_table_lives_on_is_worth_most() -> None:
    table = RuleTable([0, 2], [([(2, 1.3), (0, 2.0)], BOLD), *[([], BOLD)] * 4])
    table = table.with_actions([BOLD, CAREFUL, BOLD, CAREFUL])
    study = worth_of_signals(table, small_sample())
    by_axis = {signal.axis: signal for signal in study.signals}
    assert study.signals[0].axis == 2
    assert by_axis[2].scores.difference is not None
    assert by_axis[2].scores.difference.mean < 0
    assert by_axis[0].scores.difference is not None
    assert by_axis[0].scores.difference.mean == 0
    assert by_axis[0].scores.after == study.score
    assert by_axis[0].without.action(0) == BOLD


def test_scale_free_rules_begin_as_they_do_whatever_signal_they_lose() -> None:
    table = six_scale_free_rules()
    study = worth_of_signals(table, small_sample())
    without = {signal.axis: signal.without for signal in study.signals}
    assert study.rules == table.rules
    assert {start_rule(each) for each in without.values()} == {0}
    assert {each.action(0) for each in without.values()} == {table.action(0)}
    # Only the start is set apart by rtt_ratio, and only ages by slow_rec_ratio.
    assert without[2] == without[0] == table
    assert without[3].rule_count == 2
    assert 33 * 0.3 < without[3].action(1)[1] < 33
    assert without[3].action(1)[2] > 0.9
