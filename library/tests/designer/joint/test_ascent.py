"""Tests one step of gradient ascent."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.tests.designer.joint.antithetic import (
    half_differences,
    pair_outcome,
    pair_request,
)
from library.tests.designer.joint.spaces import Action, action_space, climb_of
from remy_farm.designer.actions import Coordinates
from remy_farm.designer.joint.climb import Climb, Slopes, ascend
from remy_farm.designer.joint.gradient import GradientSamples, Moments, gradient_samples
from remy_farm.designer.joint.schedule import Settings

_SPACE = action_space()
_SETTINGS = Settings(perturbation=0.15, step_size=0.03, specimens=16, average_decay=0.97)
_MIDDLE: Action = (0.5, 10.0, 3.0)
# Enough samples for a bias correction of 1.
_MANY_SAMPLES = 1e6
# Three rules: one inner node is above all of them, a second one above the last two.
_CLIMB = replace(
    climb_of([_MIDDLE] * 3, _SPACE),
    rule_slopes=replace(Slopes.initial(3), samples=np.full((3, 1), _MANY_SAMPLES)),
    region_slopes=replace(Slopes.initial(2), samples=np.full((2, 1), _MANY_SAMPLES)),
)


def _moments(t: Coordinates) -> Moments:
    """Returns samples that give averages of zeros these t-statistics.

    t = 0.1 mean / sqrt(0.02 squares * 0.1 / 1.9)
    """
    return Moments(mean=t / 0.1, squares=np.full_like(t, 1.9 / (0.1 * 0.02)))


def _samples(rules: list[list[float]], regions: list[list[float]]) -> GradientSamples:
    return GradientSamples(_moments(np.array(rules)), _moments(np.array(regions)))


# t-statistics for no step, and for the longest one.
_NO_STEP = [0.0, 0.0, 0.0]
_FULL_STEP = [100.0, 100.0, 100.0]


def _step(rules: list[list[float]], regions: list[list[float]]) -> Coordinates:
    after = ascend(_CLIMB, _samples(rules, regions), _SETTINGS, _SPACE)
    moved: Coordinates = after.coordinates - _CLIMB.coordinates
    return moved


def test_a_step_is_zero_in_the_dead_zone_and_limited_beyond_it() -> None:
    moved = _step(
        [[0.69, -0.69, 0.0], [0.7 + 1.5, -0.7 - 1.5, 0.7 + 3], [50, -50, 1.0]], [_NO_STEP] * 2
    )
    expected = [[0, 0, 0], [0.015, -0.015, 0.03], [0.03, -0.03, 0.003]]
    assert moved == pytest.approx(np.array(expected), abs=1e-12)


def test_a_region_moves_all_of_its_rules() -> None:
    moved = _step([_NO_STEP] * 3, [[0.7 + 1.5, 0, 0], _NO_STEP])
    assert moved == pytest.approx(np.array([[0.015, 0, 0]] * 3))
    moved = _step([_NO_STEP] * 3, [_NO_STEP, [0.7 + 1.5, 0, 0]])
    assert moved == pytest.approx(np.array([_NO_STEP, [0.015, 0, 0], [0.015, 0, 0]]))


def test_a_rule_moves_with_all_regions_above_it() -> None:
    moved = _step([_FULL_STEP] * 3, [_FULL_STEP] * 2)
    assert moved == pytest.approx(0.03 * np.array([[2.0] * 3, [3.0] * 3, [3.0] * 3]))


def test_without_samples_nothing_moves() -> None:
    nothing = GradientSamples(
        Moments(np.zeros((3, 3)), np.zeros((3, 3))),
        Moments(np.zeros((2, 3)), np.zeros((2, 3))),
    )
    after = ascend(_CLIMB, nothing, _SETTINGS, _SPACE)
    assert (after.coordinates == _CLIMB.coordinates).all()


def test_the_published_table_is_at_the_moving_average() -> None:
    climb, points = _CLIMB, []
    for number in range(20):
        direction = 9.0 if number % 3 else -9.0
        climb = ascend(climb, _samples([[direction] * 3] * 3, [_NO_STEP] * 2), _SETTINGS, _SPACE)
        points.append(climb.coordinates)

    expected = 0.97**20 * _CLIMB.coordinates
    for age, point in enumerate(reversed(points)):
        expected = expected + 0.03 * 0.97**age * point
    assert climb.average == pytest.approx(expected)
    assert climb.steps == 20
    published = climb.published(_SPACE)
    exact = _SPACE.with_actions(climb.table, climb.average)
    for rule in range(3):
        multiple, increment, intersend_ms = exact.action(rule)
        assert published.action(rule) == (multiple, round(increment), intersend_ms)


@given(
    low=st.tuples(st.floats(0, 0.5), st.integers(0, 10), st.floats(0.001, 1)),
    width=st.tuples(st.floats(0, 0.5), st.integers(0, 100), st.floats(0, 40)),
    step_size=st.floats(0.001, 10),
    t=st.lists(st.floats(-20, 20), min_size=15, max_size=15),
)
def test_actions_stay_within_the_bounds(
    low: tuple[float, int, float],
    width: tuple[float, int, float],
    step_size: float,
    t: list[float],
) -> None:
    ranges = [(least, least + more) for least, more in zip(low, width, strict=True)]
    space = action_space(*ranges)
    climb = climb_of([_MIDDLE, (0.0, 0.0, 0.0), (1e3, 1e3, 1e3)], space)
    rows = np.array(t).reshape(5, 3).tolist()
    for _ in range(5):
        settings = replace(_SETTINGS, step_size=step_size)
        climb = ascend(climb, _samples(rows[:3], rows[3:]), settings, space)
        for table in (climb.table, climb.published(space)):
            for rule in range(3):
                for value, (least, most) in zip(table.action(rule), ranges, strict=True):
                    assert least <= value <= most


def test_rounded_increments_stay_within_fractional_bounds() -> None:
    space = action_space(window_increment=(1.6, 4.4))
    for increment, published in ((1.6, 2.0), (2.4, 2.0), (2.6, 3.0), (4.4, 4.0)):
        climb = climb_of([(0.5, increment, 3.0)], space)
        assert climb.published(space).action(0)[1] == published
    space = action_space(window_increment=(0.4, 5.6))
    assert climb_of([(0.5, 0.4, 3.0)], space).published(space).action(0)[1] == 1
    assert climb_of([(0.5, 5.6, 3.0)], space).published(space).action(0)[1] == 5


def test_ascent_finds_the_maximum_of_a_quadratic() -> None:
    top = np.array(
        [[math.log(0.4), math.log(30), 0.0], [math.log(0.9), math.log(3), 2.0], [-1.0, 1.0, 1.0]]
    )
    climb: Climb = _CLIMB
    start = np.abs(climb.coordinates - top).max()
    outcome = pair_outcome([[1, 1, 1]] * 16, [[1, 1, 1]] * 16)
    for number in range(400):
        request = pair_request(number, _SETTINGS.perturbation, range(16))
        differences = half_differences(
            request, climb.coordinates, lambda x: -math.fsum(((x - top) * (x - top)).ravel())
        )
        samples = gradient_samples(request, outcome, np.array(differences), climb.regions, rules=3)
        climb = ascend(climb, samples, _SETTINGS, _SPACE)

    assert start > 1
    assert np.abs(climb.coordinates - top).max() < 0.2
    assert np.abs(climb.average - top).max() < 0.1
