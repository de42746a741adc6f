"""Tests climbs: splits, merges and messages."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.tests.designer.joint.spaces import action_space, climb_of
from remy_farm.designer import CheckpointError
from remy_farm.designer.actions import Coordinates
from remy_farm.designer.joint.climb import Climb, Slopes
from remy_farm.designer.joint.divisions import cheapest_merge
from remy_farm.designer.splitting import RuleMerge
from remy_proto.v1 import checkpoint_pb2

_SPACE = action_space()
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def _rows(count: int) -> st.SearchStrategy[Coordinates]:
    values = st.lists(_FLOATS, min_size=3 * count, max_size=3 * count)
    return values.map(lambda flat: np.array(flat).reshape(count, 3))


def _climb() -> Climb:
    """Returns a climb of three rules and two inner nodes, with a different value in every cell."""
    climb = climb_of([(0.1, 1.0, 1.0), (0.2, 2.5, 2.0), (0.3, 3.0, 3.0)], _SPACE)
    rows = np.arange(9.0).reshape(3, 3)
    return replace(
        climb,
        rule_slopes=Slopes(rows + 100, rows + 200, np.array([[7.0], [8.0], [9.0]])),
        region_slopes=Slopes(rows[:2] + 300, rows[:2] + 400, np.array([[5.0], [6.0]])),
        average=climb.coordinates + 0.125,
        steps=77,
        last_split=44,
    )


def test_a_climb_starts_at_the_coordinates_of_its_table() -> None:
    climb = climb_of([(0.5, 2.5, 3.0)], _SPACE)
    assert climb.table.action(0) == pytest.approx((0.5, 2.5, 3.0))
    assert (climb.average == climb.coordinates).all()
    assert not climb.rule_slopes.mean.any()
    assert not climb.rule_slopes.squares.any()


def test_children_replace_their_parent_after_a_split() -> None:
    before = _climb()
    after = before.split(1, [(0, 1.5)])

    def children(rows: Coordinates, kept: float = 1) -> list[list[float]]:
        first, parent, last = rows.tolist()
        copy = [value * kept for value in parent]
        return [first, copy, copy, last]

    assert after.coordinates.tolist() == children(before.coordinates)
    assert after.average.tolist() == children(before.average)
    assert after.rule_slopes.mean.tolist() == children(before.rule_slopes.mean, 1 / 8)
    assert after.rule_slopes.samples.tolist() == [[7], [8], [8], [9]]
    assert after.rule_slopes.squares.tolist() == children(before.rule_slopes.squares, 1 / 8)
    assert (after.steps, after.last_split) == (77, 77)


@pytest.mark.parametrize(("rule", "region"), [(0, 1), (1, 2), (2, 2)])
def test_a_new_region_inherits_the_slopes_of_its_rule(rule: int, region: int) -> None:
    """In pre-order, the inner nodes of the chain are above rules 0 to 2 and above rules 1 to 2."""
    before = _climb()
    lower, upper = before.table.region(rule)
    after = before.split(rule, [(0, (lower[0] + upper[0]) / 2)])

    ranges = list(after.regions.ranges)
    assert ranges.pop(region) == (rule, rule + 2)
    assert len(ranges) == 2
    for regions_after, rules, regions in (
        (after.region_slopes.mean, before.rule_slopes.mean, before.region_slopes.mean),
        (after.region_slopes.squares, before.rule_slopes.squares, before.region_slopes.squares),
    ):
        rows = regions_after.tolist()
        assert rows.pop(region) == rules[rule].tolist()
        assert rows == regions.tolist()


@given(
    rule=st.integers(0, 2),
    at=st.lists(st.floats(0.01, 0.99), min_size=1, max_size=4),
    memory=st.lists(st.floats(0, 10), min_size=4, max_size=4),
)
def test_a_split_does_not_change_actions(rule: int, at: list[float], memory: list[float]) -> None:
    before = climb_of([(0.1, 1.0, 1.0), (0.2, 2.5, 2.0), (0.3, 3.0, 3.0)], _SPACE)
    lower, upper = before.table.region(rule)
    thresholds = [
        (axis, lower[axis] + fraction * (upper[axis] - lower[axis]))
        for axis, fraction in enumerate(at)
        if axis in before.table.signals
    ]

    after = before.split(rule, thresholds)

    assert after.table.rule_count == len(after.coordinates) == 2 + 2 ** len(thresholds)
    action = after.table.action(after.table.find(memory))
    assert action == before.table.action(before.table.find(memory))
    assert _SPACE.with_actions(after.table, after.coordinates) == after.table


def test_a_merge_undoes_a_split() -> None:
    before = _climb()
    split = before.split(1, [(0, 1.5)])
    merge = RuleMerge(1, (2,))
    assert cheapest_merge(split.table, split.average, [5, 3, 2, 7]) == (0, merge)

    after, uses = split.merged(merge, [5, 3, 2, 7], _SPACE)

    assert uses == [5, 5, 7]
    assert after.table.nodes() == before.table.nodes()
    assert (after.coordinates == before.coordinates).all()
    assert (after.average == before.average).all()
    assert (after.rule_slopes.samples == before.rule_slopes.samples).all()
    # Each child had an eighth of the slope, and the merged rule has the sum of both.
    assert after.rule_slopes.mean[1].tolist() == (before.rule_slopes.mean[1] / 4).tolist()
    assert (after.region_slopes.mean == before.region_slopes.mean).all()


def test_two_merged_rules_move_to_their_weighted_mean() -> None:
    before = climb_of([(0.1, 1.0, 1.0), (0.2, 2.5, 2.0), (0.3, 3.0, 3.0)], _SPACE)
    climb, uses = before.merged(RuleMerge(1, (2,)), [4, 1, 3], _SPACE)
    mean = before.coordinates[1] * 0.25 + before.coordinates[2] * 0.75
    assert climb.coordinates.tolist() == [before.coordinates[0].tolist(), pytest.approx(mean)]
    assert uses == [4, 4]
    # Several neighbours keep their coordinates.
    climb, uses = before.merged(RuleMerge(0, (1, 2)), [4, 1, 3], _SPACE)
    assert climb.coordinates.tolist() == before.coordinates[1:].tolist()
    assert uses == [2, 6]


def test_the_cheapest_merge_is_of_similar_or_rarely_used_rules() -> None:
    climb = climb_of([(0.1, 1.0, 1.0), (0.2, 2.5, 2.0), (0.2, 2.6, 2.1)], _SPACE)

    def cheapest(uses: list[float]) -> tuple[int, ...]:
        result = cheapest_merge(climb.table, climb.coordinates, uses)
        assert result is not None
        merge = result[1]
        return (merge.rule, *merge.neighbours)

    assert cheapest([5, 5, 5]) == (1, 2)
    assert cheapest([0.0001, 5, 5]) == (0, 1, 2)


def test_a_split_does_not_change_the_climb_that_it_is_made_from() -> None:
    before, untouched = _climb(), _climb()
    after = before.split(0, [(0, 0.5)])
    assert not np.shares_memory(after.coordinates, before.coordinates)
    assert before.to_message() == untouched.to_message()


@given(
    rules=st.tuples(_rows(3), _rows(3), _rows(3), _rows(3)),
    region_slopes=st.tuples(_rows(2), _rows(2)),
    steps=st.integers(0, 2**32 - 1),
)
def test_message_round_trip_keeps_every_bit(
    rules: tuple[Coordinates, Coordinates, Coordinates, Coordinates],
    region_slopes: tuple[Coordinates, Coordinates],
    steps: int,
) -> None:
    climb = replace(
        _climb(),
        coordinates=rules[0],
        average=rules[1],
        rule_slopes=Slopes(rules[2], rules[3], np.ones((3, 1))),
        region_slopes=Slopes(*region_slopes, np.ones((2, 1))),
        stalled_steps=steps // 2,
        steps=steps,
        last_split=steps,
    )

    data = climb.to_message().SerializeToString(deterministic=True)
    back = Climb.from_message(checkpoint_pb2.Climb.FromString(data))

    assert _bits(back) == _bits(climb)
    assert back.table == climb.table
    assert back.regions == climb.regions


def _bits(climb: Climb) -> list[bytes]:
    arrays = (climb.coordinates, climb.average, climb.rule_slopes.mean, climb.rule_slopes.squares)
    return [
        *(array.tobytes() for array in arrays),
        climb.region_slopes.mean.tobytes(),
        climb.region_slopes.squares.tobytes(),
        struct.pack("<II", climb.steps, climb.last_split),
    ]


_FIELDS = ["coordinates", "average", "rule_slopes", "rule_squares"]
_FIELDS += ["region_slopes", "region_squares"]


@pytest.mark.parametrize("name", _FIELDS)
def test_a_message_with_too_few_numbers_is_refused(name: str) -> None:
    message = _climb().to_message()
    getattr(message, name).pop()
    with pytest.raises(CheckpointError, match=r"8 numbers .* need 9|5 numbers .* need 6"):
        Climb.from_message(message)


@pytest.mark.parametrize("name", _FIELDS)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_message_with_a_number_that_is_not_finite_is_refused(name: str, value: float) -> None:
    message = _climb().to_message()
    getattr(message, name)[4] = value
    with pytest.raises(CheckpointError, match="not finite"):
        Climb.from_message(message)


def test_a_message_with_a_broken_table_is_refused() -> None:
    message = _climb().to_message()
    message.table.nodes.pop()
    with pytest.raises(CheckpointError, match="broken table"):
        Climb.from_message(message)
