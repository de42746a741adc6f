"""Tests the export of scale-free tables to absolute rules."""

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from library.tests.remycc.tables import six_scale_free_rules
from remy_farm.analysis.export import ExportError, exported, intervals_ms
from remy_farm.specification import parse_spec
from remy_proto.v1 import rule_table_pb2
from remy_simulator import RuleTable
from remy_simulator.messages import axis_of

_SPEC = parse_spec("""
name: octaves
network: {rate_mbps: {log_uniform: [3, 48]}, rtt_ms: 150, senders: {integer_uniform: [1, 4]},
  traffic: {exponential_time: {mean_ms: 1000}, mean_off_ms: 1000}}
""")


def _table(random: Random) -> RuleTable:
    table = six_scale_free_rules()
    for _ in range(random.randint(0, 4)):
        rule = random.randrange(1, table.rule_count)
        lower, upper = table.region(rule)
        axes = sorted(random.sample(list(table.signals), random.randint(1, 2)))
        thresholds = [
            (axis, (lower[axis] + min(upper[axis], lower[axis] + 3)) / 2) for axis in axes
        ]
        table = table.split(rule, thresholds)
    actions = [
        (random.uniform(0, 1), random.uniform(0, 200), random.uniform(0.1, 3))
        for _ in range(table.rule_count - 1)
    ]
    return table.with_actions([table.action(0), *actions])


@settings(max_examples=30)
@given(st.randoms(use_true_random=False), st.integers(1, 3))
def test_in_the_middle_of_a_cell_the_export_acts_like_the_scale_free_table(
    random: Random, per_octave: int
) -> None:
    table = _table(random)
    absolute = exported(table, _SPEC, per_octave)
    assert absolute.rules == rule_table_pb2.RULES_ABSOLUTE
    for rec_ewma_ms in intervals_ms(_SPEC, per_octave)[0]:
        send_ratio, rtt_ratio, slow_rec_ratio = (
            random.uniform(0, 3),
            random.uniform(1, 4),
            random.uniform(1 / 32, 3),
        )
        relative = table.action(table.find((send_ratio, 1.0, rtt_ratio, slow_rec_ratio)))
        memory = (send_ratio * rec_ewma_ms, rec_ewma_ms, rtt_ratio, slow_rec_ratio * rec_ewma_ms)
        multiple, increment, intersend_ms = absolute.action(absolute.find(memory))
        assert multiple == relative[0]
        assert increment == round(relative[1] / 100 * 150 / rec_ewma_ms)
        assert intersend_ms == pytest.approx(relative[2] * rec_ewma_ms)


def test_the_export_has_the_start_rule_once_and_other_rules_per_cell() -> None:
    table = six_scale_free_rules()
    absolute = exported(table, _SPEC, 2)
    assert absolute.action(absolute.find((0.0, 0.0, 0.0, 0.0))) == table.action(0)
    # Each cell has the five other rules.
    assert absolute.rule_count == 1 + 5 * len(intervals_ms(_SPEC, 2)[0])


def test_cells_cover_the_intervals_from_the_fastest_link_to_the_slowest_share() -> None:
    middles, bounds = intervals_ms(_SPEC, 2)
    assert middles[0] < 12 / 48 < 4 * 12 / 3 < middles[-1]
    assert sorted([*middles, *bounds])[::2] == middles
    ratios = [later / earlier for earlier, later in pairwise(bounds)]
    assert ratios == pytest.approx([2**0.5] * len(ratios))


def test_queue_ratios_are_converted_to_packets() -> None:
    queue = axis_of(rule_table_pb2.SIGNAL_QUEUE_RATIO)
    nodes = [
        ([(2, 0.5)], (1.0, 1.0, 1.0)),
        ([], (0.0, 30.0, 0.1)),
        ([(queue, 0.25)], (1.0, 1.0, 1.0)),
        ([], (0.7, 33.0, 0.9)),
        ([], (0.5, 33.0, 1.1)),
    ]
    table = RuleTable([2, queue], nodes, rules=rule_table_pb2.RULES_SCALE_FREE)
    absolute = exported(table, _SPEC, 1)
    for rec_ewma_ms in intervals_ms(_SPEC, 1)[0]:
        memory = [0.0] * queue
        memory[1], memory[2] = rec_ewma_ms, 1.5
        for share, multiple in ((0.24, 0.7), (0.26, 0.5)):
            queue_length = share * 150 / rec_ewma_ms
            assert absolute.action(absolute.find((*memory, queue_length)))[0] == multiple


def test_an_export_round_trips_as_dna() -> None:
    absolute = exported(six_scale_free_rules(), _SPEC, 2)
    assert RuleTable.from_dna(absolute.to_dna())[0] == absolute


def test_an_absolute_table_is_refused() -> None:
    table = RuleTable([0], [([], (1.0, 1.0, 1.0))])
    with pytest.raises(ExportError, match="already absolute; convert writes"):
        exported(table, _SPEC, 2)


def test_a_table_with_the_signal_age_is_refused() -> None:
    age = axis_of(rule_table_pb2.SIGNAL_AGE)
    table = RuleTable(
        [age],
        [([(age, 1.0)], (0.0, 1.0, 1.0)), ([], (0.0, 1.0, 1.0)), ([], (0.0, 1.0, 1.0))],
        rules=rule_table_pb2.RULES_SCALE_FREE,
    )
    with pytest.raises(
        ExportError, match=r"uses the signal age, .* slow_rec_ratio in place of age"
    ):
        exported(table, _SPEC, 2)


def test_too_many_cells_are_refused() -> None:
    with pytest.raises(ExportError, match=r"100 cells per octave make \d+ cells .*; at most 400"):
        exported(six_scale_free_rules(), _SPEC, 100)
