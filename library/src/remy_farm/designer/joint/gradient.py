"""Samples of the gradient by rule and by region, from antithetic perturbations."""

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

# Regions: what moves together when a whole branch moves


@dataclass(frozen=True)
class Regions:
    """The inner nodes of a tree in pre-order, each as the range of the rules below it.

    Rules are numbered in pre-order, so that the rules below any node are neighbours.
    """

    #: (first rule, first rule behind) of each inner node.
    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, table: RuleTable) -> Regions:
        """The inner nodes of a table."""
        ranges: list[tuple[int, int]] = []
        # Inner nodes on the way down: their place in `ranges`, and how many children are to come.
        path: list[list[int]] = []
        rules = 0
        for thresholds, _ in table.nodes():
            if thresholds:
                path.append([len(ranges), 1 << len(thresholds)])
                ranges.append((rules, rules))
                continue
            rules += 1
            while path:
                place = path[-1]
                place[1] -= 1
                if place[1] > 0:
                    break
                ranges[place[0]] = (ranges[place[0]][0], rules)
                path.pop()
        return cls(tuple(ranges))

    def spread(self, rows: Coordinates, steps: Coordinates) -> Coordinates:
        """`steps` by rule, with each inner node's row added to all of its rules."""
        moved = steps.copy()
        # Rules that lie below no node of a depth are given a row of zeros.
        padded = np.concatenate([rows, np.zeros((1, 3))])
        for nodes in self._levels:
            moved += padded.take(nodes, axis=0)
        return moved

    @cached_property
    def _levels(self) -> list[NDArray[np.intp]]:
        """By depth and rule: the inner node of that depth that the rule lies below, else -1.

        There is one at most, and those of lesser depth come first: a rule's sum has the order of
        the nodes.
        """
        rules = max((behind for _, behind in self.ranges), default=0)
        levels: list[NDArray[np.intp]] = []
        above: list[int] = []
        for node, (first, behind) in enumerate(self.ranges):
            above = [end for end in above if end > first]
            if len(above) == len(levels):
                levels.append(np.full(rules, -1))
            levels[len(above)][first:behind] = node
            above.append(behind)
        return levels


# Samples from antithetic perturbations (evolution strategies)
#
# On specimen i all rules are moved by sigma epsilon_i and by - sigma epsilon_i, under the same
# random streams. With d_i half the difference of the two scores, d_i epsilon_i / sigma is an
# unbiased sample of the gradient of the score, smoothed over the perturbation (Salimans et al.
# 2017; Nesterov and Spokoiny 2017). One pair informs all coordinates of the rules that it used.

# A difference beyond this many times the median one counts as if it were no larger: one freak
# specimen shall not throw the climb.
_FREAK = 5.0


@dataclass(frozen=True)
class Moments:
    """First and second moments of samples, by row."""

    #: Mean of the samples over the specimens that could be scored.
    mean: Coordinates
    #: Sum of the samples' squares over the square of their number.
    squares: Coordinates


@dataclass(frozen=True)
class GradientSamples:
    """What one step's outcome says about the gradient."""

    #: One row a rule.
    rules: Moments
    #: One row a region: the slope when all rules of the region move together.
    regions: Moments


def gradient_samples(
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
    differences: NDArray[np.float64],
    regions: Regions,
    *,
    rules: int,
) -> GradientSamples:
    """The samples of a request whose candidates are one antithetic pair of a table so large.

    `differences` holds half the difference of the pair's scores by specimen, not a number where one
    could not be scored. They count in units of their median size.
    """
    differences = in_units_of_median(differences)
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
    """The sample of each specimen with a difference, one row a rule, in the specimens' order.

    A rule that neither of the pair used has a sample of zero. Differences count in units of their
    median size.
    """
    keys = np.frombuffer(request.specimen_columns.keys, np.uint64).tolist()
    masks = np.frombuffer(outcome.used_rules, np.uint8).reshape(len(keys), -1)
    sizes = _sizes(request, in_units_of_median(differences))
    used = np.unpackbits(masks, axis=1, count=rules, bitorder="little")
    for key, size, mask in zip(keys, sizes.tolist(), used, strict=True):
        if not math.isnan(size):
            noise = np.array(perturbation_noise(request.seed, key, rules)).reshape(-1, 3)
            yield noise * size * mask[:, np.newaxis]


def in_units_of_median(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """The differences over the median size of those of one step that are not zero.

    A step's unit is its own, so that neither a freak specimen nor a table that is bad in many ways,
    as the first one is, counts for more than another step: averages forget it as soon as all else.
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
    """By specimen: the difference, limited, over the standard deviation of the perturbation."""
    scale = request.candidates[0].perturbation.scale
    sizes: NDArray[np.float64] = np.minimum(np.maximum(differences, -_FREAK), _FREAK) / scale
    return sizes
