"""Tests Slopes: moving averages of gradient samples, and the direction of ascent."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_farm.designer.actions import Coordinates
from remy_farm.designer.joint.climb import Slopes
from remy_farm.designer.joint.gradient import Moments

# Enough samples for a bias correction of 1.
_MANY = np.full((1, 1), 1e6)


def _slopes_with_t(t: list[float]) -> Slopes:
    """Returns one row of slopes with these t-statistics: mean / sqrt(squares * 0.1 / 1.9)."""
    squares = np.array([[1.0, 4.0, 1e-20]])
    return Slopes(np.array([t]) * np.sqrt(squares * 0.1 / 1.9), squares, _MANY)


def test_direction_is_zero_in_the_dead_zone() -> None:
    assert not _slopes_with_t([0.0, 0.69, -0.69]).direction().any()


def test_direction_grows_to_one_beyond_the_dead_zone() -> None:
    assert _slopes_with_t([0.7 + 1.5, -0.7 - 0.3, 0.7 + 3]).direction() == pytest.approx(
        np.array([[0.5, -0.1, 1]])
    )
    assert _slopes_with_t([50, -50, 4]).direction().tolist() == [[1, -1, 1]]


def test_direction_is_zero_without_samples() -> None:
    no_samples = Moments(np.zeros((4, 3)), np.zeros((4, 3)))
    assert not Slopes.initial(4).updated(no_samples).direction().any()


@given(st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=3), st.floats(1e-6, 1e6))
def test_direction_does_not_depend_on_the_unit_of_scores(t: list[float], unit: float) -> None:
    slopes = _slopes_with_t(t)
    scaled = Slopes(slopes.mean * unit, slopes.squares * unit * unit, _MANY)
    direction = slopes.direction()
    assert scaled.direction() == pytest.approx(direction, abs=1e-9)
    assert (np.abs(direction) <= 1).all()


def test_averages_are_exponential() -> None:
    slopes, samples = Slopes.initial(2), []
    for number in range(20):
        samples.append(Moments(np.full((2, 3), number - 7.0), np.full((2, 3), number + 1.0)))
        slopes = slopes.updated(samples[-1])

    def average(values: list[Coordinates], decay: float) -> Coordinates:
        return sum(
            ((1 - decay) * decay**age * value for age, value in enumerate(reversed(values))),
            start=np.zeros((2, 3)),
        )

    assert slopes.mean == pytest.approx(average([sample.mean for sample in samples], 0.9))
    assert slopes.squares == pytest.approx(average([sample.squares for sample in samples], 0.98))


def test_t_has_mean_0_and_deviation_1_without_a_slope() -> None:
    random = np.random.default_rng(1)
    slopes = Slopes.initial(2000)
    pairs = 16
    for _ in range(200):
        draws = random.normal(size=(pairs, 2000, 3))
        slopes = slopes.updated(
            Moments(draws.mean(axis=0), (draws * draws).sum(axis=0) / (pairs * pairs))
        )
    errors = np.sqrt(slopes.squares * 0.1 / 1.9)
    t = (slopes.mean / errors).ravel()
    assert t.mean() == pytest.approx(0, abs=5 / math.sqrt(t.size))
    assert t.std() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("steps", [1, 2, 5, 20, 60])
def test_bias_correction_keeps_t_standard_normal_from_the_first_step(steps: int) -> None:
    """Without a slope, the share of coordinates beyond the dead zone is the same at every step."""
    random = np.random.default_rng(steps)
    slopes = Slopes.initial(4000)
    for _ in range(steps):
        draws = random.normal(size=(16, 4000, 3))
        slopes = slopes.updated(
            Moments(draws.mean(axis=0), (draws * draws).sum(axis=0) / (16 * 16))
        )
    # The absolute value of a standard normal exceeds 0.7 in 48 of 100 cases.
    assert (slopes.direction() != 0).mean() == pytest.approx(0.484, abs=0.03)


def test_bias_correction_is_per_row() -> None:
    old = Slopes.initial(1)
    sample = Moments(np.ones((1, 3)), np.full((1, 3), 2.0))
    for _ in range(200):
        old = old.updated(sample)
    young = Slopes.initial(1).updated(sample)
    both = young.with_inserted_row(1, old, 0)
    assert both.samples.tolist() == [[1], [200]]
    assert both.direction()[0] == pytest.approx(young.direction()[0])
    assert both.direction()[1] == pytest.approx(old.direction()[0])
    # After one sample t = 1 / sqrt(2) = 0.707, just beyond the dead zone.
    assert both.direction()[0] == pytest.approx(np.full(3, (2**-0.5 - 0.7) / 3))
