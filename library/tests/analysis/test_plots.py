"""Tests plots: PNG output, and the ellipse of one standard deviation."""

import math

import numpy as np
import pytest

from library.tests.analysis.pictures import assert_is_png
from library.tests.analysis.small_design import small_events
from remy_farm.analysis import plots
from remy_farm.analysis.history import collect_history
from remy_farm.analysis.plots import (
    Cloud,
    one_sigma_ellipse,
    plot_score,
    plot_throughput_delay,
)


def test_the_score_plot_has_the_same_bytes_for_the_same_history() -> None:
    history = collect_history(small_events())
    assert_is_png(plot_score(history))
    assert plot_score(history) == plot_score(history)


def test_an_empty_history_has_a_plot() -> None:
    assert_is_png(plot_score(collect_history([])))


@pytest.mark.parametrize(
    "points",
    [
        [],
        [(1.2, 0.8)],
        [(1.2, 0.8)] * 5,
        [(1.0, 0.5), (1.1, 0.6), (1.3, 0.9)],
        [(1.0, 0.5), (40.0, 0.6), (300.0, 0.9)],
    ],
    ids=["none", "one", "equal", "narrow", "wide"],
)
def test_any_number_of_points_can_be_plotted(points: list[tuple[float, float]]) -> None:
    assert_is_png(plot_throughput_delay([Cloud("table", plots.FINAL, points)]))


def test_the_ellipse_is_one_standard_deviation_away_in_every_direction() -> None:
    points = [(1.0, 0.2), (1.4, 0.9), (1.1, 0.4), (2.0, 0.8), (1.7, 0.3)]
    contour = one_sigma_ellipse(points)
    assert contour is not None
    samples = np.array(points).T
    inverse = np.linalg.inv(np.cov(samples, bias=True))
    offsets = contour - samples.mean(axis=1, keepdims=True)
    distances = np.einsum("ik,ij,jk->k", offsets, inverse, offsets)
    assert distances == pytest.approx(np.ones(contour.shape[1]))


def test_uncorrelated_points_have_an_upright_ellipse() -> None:
    contour = one_sigma_ellipse([(1, 0), (-1, 0), (0, 3), (0, -3)])
    assert contour is not None
    assert contour[0].max() == pytest.approx(math.sqrt(2 / 4), rel=1e-3)
    assert contour[1].max() == pytest.approx(math.sqrt(18 / 4), rel=1e-3)


def test_two_points_have_no_ellipse() -> None:
    assert one_sigma_ellipse([(1, 1), (2, 2)]) is None
