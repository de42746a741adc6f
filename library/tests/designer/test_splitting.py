"""Tests where rules are split, and how they are merged."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import remy_simulator
from library.tests.designer.analytic_evaluator import bucket_of, memory_columns
from remy_farm.designer.actions import START_RULE, has_start_rule
from remy_farm.designer.joint.gradient import Regions
from remy_farm.designer.splitting import (
    Memory,
    median_thresholds,
    merged,
    possible_merges,
    split_most_used,
)
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator import RuleTable
from remy_simulator.columns import Slice, assemble, memory_summaries

_ACTION = (1.0, 1.0, 3.0)
_NODE = (0.0, 0.0, 0.0)


def _outcome(rules: dict[int, dict[int, dict[float, int]]]) -> evaluation_pb2.EvaluationOutcome:
    """Returns an outcome in which rules[rule][axis][value] look-ups had this memory value."""
    counts: Counter[tuple[int, int, int]] = Counter()
    for rule, axes in rules.items():
        for axis, values in axes.items():
            for value, count in values.items():
                counts[rule, axis, bucket_of(axis, value)] += count
    return evaluation_pb2.EvaluationOutcome(
        packets_sent=[1],
        scores=bytes(8),
        rule_uses=[1] * (max(rules) + 1),
        memory=memory_columns(counts, rules=max(rules) + 1),
    )


def _memory(rules: dict[int, dict[int, dict[float, int]]]) -> Memory:
    return memory_summaries(_outcome(rules))


def test_a_rule_is_split_at_the_median_of_every_signal() -> None:
    table = RuleTable([0, 3], [([], _ACTION)])
    memory = _memory({0: {0: {1: 10, 50: 1, 900: 10}, 3: {7: 1}}})

    thresholds = median_thresholds(table, 0, memory, like_reference=True)

    assert [axis for axis, _ in thresholds] == [0, 3]
    assert [value for _, value in thresholds] == pytest.approx([50, 7], rel=0.03)


def test_medians_do_not_depend_on_the_order_of_specimens() -> None:
    table = RuleTable([0], [([], _ACTION)])
    request = evaluation_pb2.EvaluationRequest(
        candidates=[evaluation_pb2.Candidate()],
        specimen_columns=evaluation_pb2.SpecimenColumns(keys=bytes(3 * 8)),
        objective=spec_pb2.Objective(),
        recording=evaluation_pb2.RECORDING_MEMORY,
    )
    parts = [
        (Slice(range(1), range(specimen, specimen + 1)), _outcome({0: {0: values}}))
        for specimen, values in enumerate(({10.0: 3}, {20.0: 3}, {30.0: 4}))
    ]

    memory = memory_summaries(assemble(request, parts))
    thresholds = median_thresholds(table, 0, memory, like_reference=True)

    assert memory == memory_summaries(assemble(request, parts[::-1]))
    assert thresholds == median_thresholds(
        table, 0, _memory({0: {0: {10: 3, 20: 3, 30: 4}}}), like_reference=True
    )


def test_only_memory_values_of_the_rule_itself_count() -> None:
    table = RuleTable([0], [([(0, 100.0)], _NODE), ([], _ACTION), ([], _ACTION)])
    memory = _memory({0: {0: {5: 1}}, 1: {0: {500: 9}}})

    assert median_thresholds(table, 0, memory, like_reference=True)[0][1] == pytest.approx(
        5, rel=0.03
    )
    assert median_thresholds(table, 1, memory, like_reference=True)[0][1] == pytest.approx(
        500, rel=0.03
    )


def test_like_the_reference_a_median_outside_the_region_is_replaced_by_the_middle() -> None:
    table = RuleTable([2], [([(2, 1.0)], _NODE), ([], _ACTION), ([], _ACTION)])
    lower, upper = table.region(1)
    assert lower[2] == 1

    thresholds = median_thresholds(table, 1, _memory({1: {2: {0.5: 9}}}), like_reference=True)

    assert thresholds == [(2, (1 + upper[2]) / 2)]


def test_an_axis_too_narrow_to_be_split_is_left_out() -> None:
    low = 1.0
    high = low + 2**-52
    nodes = [
        ([(0, low), (1, 7.0)], _NODE),
        *[([], _ACTION)] * 3,
        ([(0, high)], _NODE),
        ([], _ACTION),
        ([], _ACTION),
    ]
    table = RuleTable([0, 1], nodes)
    narrow = 3
    assert table.region(narrow)[0][0] == low
    assert table.region(narrow)[1][0] == high

    thresholds = median_thresholds(
        table, narrow, _memory({narrow: {0: {low: 5}, 1: {50: 5}}}), like_reference=True
    )

    assert [axis for axis, _ in thresholds] == [1]


def test_a_table_can_be_split_at_its_medians() -> None:
    table = RuleTable([0, 1, 2, 3], [([], _ACTION)])
    values = {axis: {remy_simulator.uniform(1, axis, n): 1 for n in range(50)} for axis in range(4)}

    split = table.split(0, median_thresholds(table, 0, _memory({0: values}), like_reference=True))

    assert split.rule_count == 16
    assert [split.action(rule) for rule in range(16)] == [_ACTION] * 16


# Rules that are not split on some signal

_WITH_START_RULE = RuleTable([0, 2], [([(2, 0.5)], _NODE), ([], _ACTION), ([], _ACTION)])


def test_the_start_rule_is_not_split() -> None:
    memory = _memory({0: {0: {0: 9}, 2: {0: 9}}, 1: {0: {5: 1}, 2: {1.5: 1}}})
    assert has_start_rule(_WITH_START_RULE)
    assert median_thresholds(_WITH_START_RULE, 0, memory) == []
    # With a boundary above measured values, rule 0 is not a start rule.
    other = RuleTable([0, 2], [([(2, 1.5)], _NODE), ([], _ACTION), ([], _ACTION)])
    assert not has_start_rule(other)
    assert [axis for axis, _ in median_thresholds(other, 0, _memory({0: {0: {5: 1}}}))]


def test_a_rule_is_not_split_on_an_rtt_ratio_that_is_mostly_1() -> None:
    """An RTT ratio is never below 1, so a threshold of 1 would separate nothing."""
    memory = _memory({1: {0: {5: 9}, 2: {1.0: 5, 1.5: 4}}})
    assert [axis for axis, _ in median_thresholds(_WITH_START_RULE, 1, memory)] == [0]
    assert [
        axis for axis, _ in median_thresholds(_WITH_START_RULE, 1, memory, like_reference=True)
    ] == [
        0,
        2,
    ]
    queueing = _memory({1: {0: {5: 9}, 2: {1.0: 4, 1.5: 5}}})
    assert dict(median_thresholds(_WITH_START_RULE, 1, queueing))[2] > 1.0


def test_a_signal_whose_median_is_outside_the_region_is_left_out() -> None:
    table = RuleTable([2], [([(2, 1.0)], _NODE), ([], _ACTION), ([], _ACTION)])
    memory = _memory({1: {2: {0.5: 9}}})
    assert median_thresholds(table, 1, memory) == []
    assert median_thresholds(table, 1, memory, like_reference=True) == [
        (2, (1 + table.domain_upper) / 2)
    ]


def test_a_split_adds_at_most_room_rules() -> None:
    table = RuleTable([0, 2, 3], [([], _ACTION)])
    outcome = _outcome({0: {0: {5: 9}, 2: {1.5: 9}, 3: {7: 9}}})
    split_axes = {
        room: [axis for axis, _ in split.thresholds] if split else None
        for room in (0, 1, 2, 3, 6, 7, None)
        for split in [split_most_used(table, outcome, room=room)]
    }
    assert split_axes == {
        0: None,
        1: [2],
        2: [2],
        3: [0, 2],
        6: [0, 2],
        7: [0, 2, 3],
        None: [0, 2, 3],
    }


@given(st.randoms(use_true_random=False))
def test_a_merge_assigns_a_rules_region_to_its_neighbours_only(random: Random) -> None:
    table = _random_table(random)
    possible = possible_merges(table)
    assert START_RULE not in {merge.rule for merge in possible}
    merge = random.choice(possible)
    smaller, rules, inner = merged(table, merge)
    assert smaller.rule_count == table.rule_count - 1
    assert sorted([*rules, merge.rule]) == list(range(table.rule_count))
    assert [smaller.action(rule) for rule in range(len(rules))] == [
        table.action(rule) for rule in rules
    ]
    assert len(inner) == len(Regions.of(smaller).ranges)
    for _ in range(100):
        point = tuple(random.uniform(0, 3) for _ in range(4))
        before, after = table.find(point), rules[smaller.find(point)]
        assert after in merge.neighbours if before == merge.rule else after == before


@given(st.randoms(use_true_random=False))
def test_all_merges_leave_the_start_rule_and_one_other(random: Random) -> None:
    table = _random_table(random)
    while possible := possible_merges(table):
        table = merged(table, random.choice(possible))[0]
    assert table.rule_count == 2


def _random_table(random: Random) -> RuleTable:
    """Returns a table with a start rule, and others split at random on up to three signals."""
    action = (1.0, 0.0, 1.0)
    table = RuleTable([0, 2, 3], [([], action)]).split(0, [(2, 0.5)])
    for _ in range(random.randint(1, 6)):
        rule = random.randrange(1, table.rule_count)
        lower, upper = table.region(rule)
        axes = sorted(random.sample([0, 2, 3], random.randint(1, 3)))
        thresholds = [
            (axis, (lower[axis] + min(upper[axis], lower[axis] + 3)) / 2) for axis in axes
        ]
        table = table.split(rule, thresholds)
    return table.with_actions([(1.0, float(rule), 1.0) for rule in range(table.rule_count)])


@pytest.mark.parametrize("last", [8, 9])
def test_with_many_signals_a_rule_is_split_on_the_three_that_bound_it_least(
    last: int,
) -> None:
    table = RuleTable([0, 2, 3, 6, last], [([], _ACTION)])

    def divided(table: RuleTable, rule: int, scale: float) -> RuleTable:
        values = {0: 3.0 * scale, 2: 1.5 * scale, 3: 3.0 * scale, 6: 0.01, last: 0.9}
        memory = {rule: {axis: {value: 9} for axis, value in values.items()}}
        outcome = _outcome(memory)
        outcome.rule_uses[rule] = 9
        split = split_most_used(table, outcome)
        assert split is not None
        return table.split(split.rule, split.thresholds)

    once = divided(table, 0, scale=1)
    assert [axis for axis, _ in once.nodes()[0][0]] == [0, 2, 3]
    inside = once.find((6.0, 0, 3.0, 6.0, 0, 0, 0, 0, 0, 0))
    twice = divided(once, inside, scale=2)
    assert [axis for axis, _ in twice.nodes()[1 + inside][0]] == [2, 6, last]
