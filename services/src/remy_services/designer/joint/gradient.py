"""Samples of the gradient by rule and by region, from antithetic perturbations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from remy_farm.v1 import evaluation_pb2
from remy_services.designer.actions import Coordinates
from remy_services.designer.joint.schedule import USUAL, Memories
from remy_simulator import RuleTable, perturbation_noise

# The regions of a table as ranges of rules: what moves together when a whole branch moves.
#
# Rules are numbered in pre-order, so that the rules below any node of the tree are neighbours.


@dataclass(frozen=True)
class Regions:
    """The inner nodes of a tree in pre-order, each as the range of the rules below it."""

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

    def sums(self, rows: Coordinates) -> Coordinates:
        """Sums over the rules of each inner node of rows by rule."""
        # One row more, so that the sum before a rule and the sum behind it are both there. The
        # order of these additions is fixed.
        before = np.concatenate([np.zeros((1, 3)), np.cumsum(rows, axis=0)])
        sums: Coordinates = before[self._behind] - before[self._first]
        return sums

    def spread(self, rows: Coordinates, steps: Coordinates) -> Coordinates:
        """`steps` by rule, with each inner node's row added to all of its rules."""
        moved = steps.copy()
        for (first, behind), row in zip(self.ranges, rows, strict=True):
            moved[first:behind] += row
        return moved

    @cached_property
    def _first(self) -> NDArray[np.intp]:
        return np.array([first for first, _ in self.ranges], dtype=np.intp)

    @cached_property
    def _behind(self) -> NDArray[np.intp]:
        return np.array([behind for _, behind in self.ranges], dtype=np.intp)


# Samples of the gradient from antithetic perturbations (evolution strategies).
#
# On specimen i all rules are moved by sigma epsilon_i and by - sigma epsilon_i, under the same
# random streams. With d_i half the difference of the two scores, d_i epsilon_i / sigma is an
# unbiased
# sample of the gradient of the score, smoothed over the perturbation (Salimans et al. 2017;
# Nesterov
# and Spokoiny 2017). One pair informs all coordinates of the rules that it used.


# A difference beyond this many times the usual one counts as if it were no larger: one freak
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
    #: The new running average of the differences' sizes.
    spread: float


def gradient_samples(
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
    differences: Sequence[float | None],
    regions: Regions,
    spread: float,
    memories: Memories = USUAL,
) -> GradientSamples:
    """The samples of a request whose candidates are one antithetic pair.

    `differences` holds half the difference of the pair's scores by specimen, None where one could
    not be scored.
    """
    spread = spread_after(differences, spread, memories)
    by_rule = _Sums(len(outcome.outcomes[0].rule_uses))
    by_region = _Sums(len(regions.ranges))
    count = 0
    for sample in pair_samples(request, outcome, differences, spread):
        by_rule.add(sample)
        by_region.add(regions.sums(sample))
        count += 1
    count = max(count, 1)
    return GradientSamples(by_rule.moments(count), by_region.moments(count), spread)


def pair_samples(
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
    differences: Sequence[float | None],
    spread: float,
) -> Iterator[Coordinates]:
    """The sample of each specimen with a difference, one row a rule, in the specimens' order.

    A rule that neither of the pair used has a sample of zero. `spread` is the usual size of a
    difference.
    """
    perturbation = request.candidates[0].perturbation
    pairs = len(request.specimens)
    rules = len(outcome.outcomes[0].rule_uses)
    limit = _FREAK * spread
    for number, (specimen, difference) in enumerate(
        zip(request.specimens, differences, strict=True)
    ):
        if difference is None:
            continue
        used = _used(outcome.outcomes[number]) | _used(outcome.outcomes[pairs + number])
        noise = np.array(perturbation_noise(perturbation.seed, specimen.key, rules)).reshape(-1, 3)
        size = min(max(difference, -limit), limit) / perturbation.scale
        yield noise * size * used[:, np.newaxis]


def _used(outcome: evaluation_pb2.SpecimenOutcome) -> NDArray[np.bool_]:
    """By rule: whether it was used."""
    return np.fromiter(outcome.rule_uses, np.uint64, len(outcome.rule_uses)) > 0


def spread_after(
    differences: Sequence[float | None], spread: float = 0.0, memories: Memories = USUAL
) -> float:
    """The running average of the differences' sizes, with those of one more step.

    `spread` is the average so far, 0 if there is none. A step without differences says nothing.
    """
    sizes = [abs(difference) for difference in differences if difference is not None]
    if not sizes:
        return spread
    usual = math.fsum(sizes) / len(sizes)
    if spread == 0:
        return usual
    return memories.spread * spread + (1 - memories.spread) * usual


class _Sums:
    """Sums in the order of the specimens: floating-point addition is not associative."""

    def __init__(self, rows: int) -> None:
        self._total = np.zeros((rows, 3))
        self._squares = np.zeros((rows, 3))

    def add(self, sample: Coordinates) -> None:
        self._total = self._total + sample
        self._squares = self._squares + sample * sample

    def moments(self, count: int) -> Moments:
        return Moments(self._total / count, self._squares / (count * count))
