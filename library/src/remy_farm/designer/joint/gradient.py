"""Estimates the gradient by rule and by region, from antithetic perturbations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from remy_farm.designer.actions import Coordinates
from remy_proto.v1 import evaluation_pb2
from remy_simulator import RuleTable, _native, perturbation_noise
from remy_simulator.columns import gradient_moments

# Regions: sets of rules that move together


@dataclass(frozen=True)
class Regions:
    """The inner nodes of a rule table in pre-order, each as the range of the rules below it.

    Rules are numbered in pre-order too, so the rules below a node have consecutive numbers.
    """

    #: Half-open range of rule numbers, (first, end), of each inner node.
    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, table: RuleTable) -> Regions:
        """Returns the regions of a table."""
        ranges: list[tuple[int, int]] = []
        # Inner nodes above the current one: index in `ranges`, and number of children left.
        path: list[list[int]] = []
        rules = 0
        for thresholds, _ in table.nodes():
            if thresholds:
                path.append([len(ranges), 1 << len(thresholds)])
                ranges.append((rules, rules))
                continue
            rules += 1
            while path:
                parent = path[-1]
                parent[1] -= 1
                if parent[1] > 0:
                    break
                ranges[parent[0]] = (ranges[parent[0]][0], rules)
                path.pop()
        return cls(tuple(ranges))

    def add_to_rules(self, by_region: Coordinates, by_rule: Coordinates) -> Coordinates:
        """Returns `by_rule`, with the row of each region added to all of its rules."""
        total = by_rule.copy()
        # A rule without a node at some depth has index -1 there, which selects the row of zeros.
        padded = np.concatenate([by_region, np.zeros((1, 3))])
        for nodes in self._levels:
            total += padded.take(nodes, axis=0)
        return total

    @cached_property
    def _levels(self) -> list[NDArray[np.intp]]:
        """By depth, the inner node of that depth above each rule; -1 if there is none.

        The order of depths fixes the order of summation, and so the bits of the sums.
        """
        rules = max((end for _, end in self.ranges), default=0)
        levels: list[NDArray[np.intp]] = []
        ends_above: list[int] = []
        for node, (first, end) in enumerate(self.ranges):
            ends_above = [other for other in ends_above if other > first]
            if len(ends_above) == len(levels):
                levels.append(np.full(rules, -1))
            levels[len(ends_above)][first:end] = node
            ends_above.append(end)
        return levels


# Samples from antithetic perturbations (evolution strategies)
#
# On specimen i the coordinates of all rules are moved by sigma epsilon_i and by -sigma epsilon_i,
# with common random numbers. With d_i half the difference of the two scores, d_i epsilon_i / sigma
# is an unbiased sample of the gradient of the score smoothed over the perturbation (Salimans et al.
# 2017; Nesterov and Spokoiny 2017). One pair is a sample for every rule that it used.

# Score differences are clipped at this multiple of their median size, so that one outlier among the
# specimens cannot dominate the step.
_OUTLIER_LIMIT = 5.0


@dataclass(frozen=True)
class Moments:
    """First and second moments of the samples of one step, by row."""

    #: Mean of the samples over the specimens that were scored.
    mean: Coordinates
    #: Sum of the squared samples, divided by the square of their number.
    squares: Coordinates


@dataclass(frozen=True)
class GradientSamples:
    """The gradient samples of one step."""

    #: One row per rule.
    rules: Moments
    #: One row per region: the slope if all rules of the region move together.
    regions: Moments


def gradient_samples(
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
    differences: NDArray[np.float64],
    regions: Regions,
    *,
    rules: int,
) -> GradientSamples:
    """Returns the samples of a step with one antithetic pair of a table of `rules` rules.

    `differences` holds half the difference of the pair's scores on each specimen; NaN if one of the
    two has no score. They are scaled by their median size.
    """
    differences = scaled_by_median(differences)
    moments = gradient_moments(
        seed=request.seed,
        keys=request.specimen_columns.keys,
        sizes=_sizes(request, differences).tobytes(),
        used=outcome.used_rules,
        rules=rules,
        ranges=regions.ranges,
    )
    return GradientSamples(rules=_moments(moments.by_rule), regions=_moments(moments.by_range))


def _moments(columns: _native.Moments) -> Moments:
    mean, squares = (
        np.frombuffer(column, np.float64).reshape(-1, 3)
        for column in (columns.mean, columns.squares)
    )
    return Moments(mean, squares)


def pair_samples(
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
    differences: NDArray[np.float64],
    *,
    rules: int,
) -> Iterator[Coordinates]:
    """Yields the sample of each specimen whose difference is not NaN: one row per rule.

    The row of a rule that neither of the pair used is zero. Differences are scaled by their median
    size.
    """
    keys = np.frombuffer(request.specimen_columns.keys, np.uint64).tolist()
    masks = np.frombuffer(outcome.used_rules, np.uint8).reshape(len(keys), -1)
    sizes = _sizes(request, scaled_by_median(differences))
    used = np.unpackbits(masks, axis=1, count=rules, bitorder="little")
    for key, size, mask in zip(keys, sizes.tolist(), used, strict=True):
        if not math.isnan(size):
            noise = np.array(perturbation_noise(request.seed, key, rules)).reshape(-1, 3)
            yield noise * size * mask[:, np.newaxis]


def scaled_by_median(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the differences of one step, divided by the median size of those that are not zero.

    All steps then have the same weight in the moving averages. Otherwise an outlier, or the large
    differences of a poor first table, would dominate the averages for many steps.
    """
    sizes = sorted(abs(size) for size in differences.tolist() if size < 0 or size > 0)
    if not sizes:
        return differences
    median = (sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) / 2
    scaled: NDArray[np.float64] = differences / median
    return scaled


def _sizes(
    request: evaluation_pb2.EvaluationRequest, differences: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Returns each specimen's clipped difference, divided by the perturbation's deviation."""
    scale = request.candidates[0].perturbation.scale
    sizes: NDArray[np.float64] = (
        np.minimum(np.maximum(differences, -_OUTLIER_LIMIT), _OUTLIER_LIMIT) / scale
    )
    return sizes
