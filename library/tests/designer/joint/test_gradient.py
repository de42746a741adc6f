"""Tests the gradient estimate from antithetic pairs."""

import math
import statistics
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.tests.designer.joint.antithetic import (
    half_differences,
    noise_of,
    pair_outcome,
    pair_request,
)
from remy_farm.designer.joint.gradient import GradientSamples, Regions, gradient_samples
from remy_proto.v1 import evaluation_pb2

# No inner nodes, as in a table of one rule.
_NONE = Regions(())
_DIFFERENCES = st.lists(st.none() | st.floats(-100, 100), min_size=1, max_size=8)


def _samples(
    request: evaluation_pb2.EvaluationRequest,
    up: Sequence[Sequence[int]],
    down: Sequence[Sequence[int]],
    differences: Sequence[float | None],
    regions: Regions = _NONE,
) -> GradientSamples:
    """Returns the samples of a step with these uses, by specimen and rule, and differences."""
    outcome = pair_outcome(up, down)
    sizes = np.array(differences, np.float64)
    return gradient_samples(request, outcome, sizes, regions, rules=len(up[0]))


def _slow(
    request: evaluation_pb2.EvaluationRequest,
    up: Sequence[Sequence[int]],
    down: Sequence[Sequence[int]],
    differences: list[float | None],
) -> tuple[list[float], list[float]]:
    """Computes the mean and the squares of the samples in plain loops."""
    sizes = [abs(d) for d in differences if d]
    unit = statistics.median(sizes) if sizes else 1.0
    scored = [(i, d / unit) for i, d in enumerate(differences) if d is not None]
    sigma = request.candidates[0].perturbation.scale
    keys = memoryview(request.specimen_columns.keys).cast("Q")
    rules = len(up[0])
    means, squares = [], []
    for rule in range(rules):
        for coordinate in range(3):
            samples = []
            for i, d in scored:
                limited = math.copysign(min(abs(d), 5.0), d)
                noise = noise_of(request.seed, keys[i], rules)[rule][coordinate]
                samples.append(limited * noise / sigma if up[i][rule] + down[i][rule] > 0 else 0.0)
            number = max(len(samples), 1)
            means.append(sum(samples) / number)
            squares.append(sum(sample**2 for sample in samples) / number**2)
    return means, squares


@given(
    seed=st.integers(0, 2**64 - 1),
    scale=st.floats(0.01, 1),
    differences=_DIFFERENCES,
    data=st.data(),
)
def test_samples_are_those_of_plain_loops(
    seed: int, scale: float, differences: list[float | None], data: st.DataObject
) -> None:
    rules = data.draw(st.integers(1, 4))
    uses = st.lists(st.integers(0, 2), min_size=rules, max_size=rules)
    all_uses = st.lists(uses, min_size=len(differences), max_size=len(differences))
    request = pair_request(seed, scale, range(len(differences)))
    up, down = data.draw(all_uses), data.draw(all_uses)

    samples = _samples(request, up, down, differences)

    means, squares = _slow(request, up, down, differences)
    assert samples.rules.mean.shape == samples.rules.squares.shape == (rules, 3)
    assert samples.rules.mean.ravel().tolist() == pytest.approx(means, rel=1e-9, abs=1e-9)
    assert samples.rules.squares.ravel().tolist() == pytest.approx(squares, rel=1e-9, abs=1e-9)


def test_the_expectation_is_the_gradient_of_a_linear_function() -> None:
    gradient = np.array([[1.0, -2.0, 0.5], [0.0, 0.3, -0.1], [4.0, 4.0, 4.0]])
    used = np.array([[1.0], [1.0], [0.0]])
    at = np.zeros((3, 3))
    uses = [[3, 1, 0]] * 16
    means = []
    for seed in range(400):
        request = pair_request(seed, 0.15, range(16))
        differences = half_differences(
            request, at, lambda x: math.fsum((gradient * used * x).ravel())
        )
        # Undoes the scaling by the step's median.
        unit = statistics.median(map(abs, differences))
        means.append(unit * _samples(request, uses, uses, differences).rules.mean)

    estimates = np.array(means)
    errors = estimates.std(axis=0, ddof=1) / math.sqrt(len(means))
    off = np.abs(estimates.mean(axis=0) - gradient * used)
    assert (off <= 5 * errors).all()
    assert errors[:2].max() < 0.05
    assert (estimates[:, 2] == 0).all()


def test_an_even_function_has_a_gradient_of_zero() -> None:
    """Both tables of a pair have the same score, so that their difference is zero."""
    request = pair_request(3, 0.2, range(16))
    differences = half_differences(request, np.zeros((2, 3)), lambda x: math.fsum((x * x).ravel()))
    uses = [[1, 1]] * 16
    assert not _samples(request, uses, uses, differences).rules.mean.any()


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=8), st.integers(0, 1000))
def test_the_order_within_a_pair_does_not_matter(differences: list[float], seed: int) -> None:
    pairs = len(differences)
    request = pair_request(seed, 0.15, range(pairs))
    up, down = [[1, 0, 1]] * pairs, [[1, 1, 0]] * pairs
    samples = _samples(request, up, down, differences)

    turned = pair_request(seed, -0.15, range(pairs))
    opposite = [-difference for difference in differences]
    swapped = _samples(turned, down, up, opposite)

    assert (samples.rules.mean == swapped.rules.mean).all()
    assert (samples.rules.squares == swapped.rules.squares).all()


def test_a_rule_that_one_table_of_the_pair_used_has_a_sample() -> None:
    request = pair_request(1, 0.1, [7])
    samples = _samples(request, [[0, 5, 0]], [[5, 0, 0]], [1.0])
    assert samples.rules.mean[:2].all()
    assert not samples.rules.mean[2].any()
    assert not samples.rules.squares[2].any()


def test_an_outlier_is_clipped_at_five_times_the_median() -> None:
    keys = range(16)
    uses = [[1]] * 16
    differences: list[float | None] = [*[2.0] * 15, 1e9]
    samples = _samples(pair_request(1, 1, keys), uses, uses, differences)
    noise = [noise_of(1, key, 1) for key in keys]
    expected = (sum(noise[:15]) + 5 * noise[15]) / 16
    assert samples.rules.mean == pytest.approx(expected)


def _alone(differences: Sequence[float | None]) -> GradientSamples:
    """Returns the samples of a table with a single rule."""
    uses = [[1]] * len(differences)
    return _samples(pair_request(1, 0.1, range(len(differences))), uses, uses, differences)


def test_samples_do_not_depend_on_the_scale_of_scores() -> None:
    differences = [1.0, -2.0, 3.0, None, -4.0, 0.0]
    samples = _alone(differences)
    scaled = _alone([None if each is None else 1e6 * each for each in differences])
    assert scaled.rules.mean == pytest.approx(samples.rules.mean)
    assert scaled.rules.squares == pytest.approx(samples.rules.squares)
    assert not _alone([0.0, None, 0.0]).rules.mean.any()


def test_the_size_of_an_outlier_does_not_matter() -> None:
    others = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0]
    outlier, larger = _alone([*others, 5.0]), _alone([*others, 1e30])
    assert (outlier.rules.mean == larger.rules.mean).all()
    assert (outlier.rules.squares == larger.rules.squares).all()


def test_specimens_without_a_score_are_ignored() -> None:
    uses = [[1]] * 2
    half = _samples(pair_request(1, 0.1, [7, 8]), uses, uses, [2.0, None])
    alone = _samples(pair_request(1, 0.1, [7]), [[1]], [[1]], [2.0])
    assert (half.rules.mean == alone.rules.mean).all()
    assert (half.rules.squares == alone.rules.squares).all()

    none = _samples(pair_request(1, 0.1, [7, 8]), uses, uses, [None, None])
    assert not none.rules.mean.any()
    assert not none.rules.squares.any()


def test_samples_of_a_region_are_the_sums_over_its_rules() -> None:
    regions = Regions(((0, 3), (1, 3)))
    uses = [[1, 2, 0], [0, 1, 1], [4, 0, 0]]
    differences: list[float | None] = [1.0, -0.5, 2.0]
    request = pair_request(5, 0.1, [7, 8, 9])
    together = _samples(request, uses, uses, differences, regions=regions)

    alone = []
    for key, used, difference in zip([7, 8, 9], uses, differences, strict=True):
        one = pair_request(5, 0.1, [key])
        unit = abs(difference or 0.0) / statistics.median(abs(each or 0.0) for each in differences)
        alone.append(unit * _samples(one, [used], [used], [difference]).rules.mean)
    for row, rules in enumerate(([0, 1, 2], [1, 2])):
        sums = np.array([sum(sample[rule] for rule in rules) for sample in alone])
        assert together.regions.mean[row] == pytest.approx(sums.mean(axis=0))
        assert together.regions.squares[row] == pytest.approx((sums * sums).sum(axis=0) / 9)


def test_a_region_of_unused_rules_has_a_slope_of_exactly_zero() -> None:
    """A difference of cumulative sums would leave a rounding error."""
    regions = Regions(((0, 3), (1, 3)))
    uses = [[1, 0, 0]] * 3
    request = pair_request(5, 1e-9, [7, 8, 9])
    samples = _samples(request, uses, uses, [1.0, -0.5, 1 / 3], regions=regions)
    assert samples.regions.mean[0].all()
    assert not samples.regions.mean[1].any()
    assert not samples.regions.squares[1].any()
