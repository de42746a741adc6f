"""Scale-free tables as absolute ones, which a .dna file can hold: their rules once for each cell of
the measured interval between packets, a climb that moves these together, and what is lost by it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import remy_simulator
from remy_farm.designer.actions import ActionSpace, Coordinates
from remy_farm.designer.joint.climb import Climb, ascend
from remy_farm.designer.joint.gradient import (
    GradientSamples,
    Moments,
    Regions,
    scaled_by_median,
)
from remy_farm.designer.joint.schedule import Settings
from remy_farm.evaluation.measures import Estimate, Evaluate, Summary, estimate, evaluate_table
from remy_farm.remycc import start_rule
from remy_farm.specification.distributions import extent, quantile
from remy_farm.specification.links import kilobits_per_packet
from remy_farm.specification.models import outline
from remy_proto.v1 import rule_table_pb2, spec_pb2
from remy_simulator import RuleTable, log2, perturbation_noise, power
from remy_simulator.messages import Action, axis_of, form_of
from remy_simulator.signals import Per

_REC_EWMA = axis_of(rule_table_pb2.SIGNAL_REC_EWMA)
_AGE = axis_of(rule_table_pb2.SIGNAL_AGE)
# A sender that has measured anything has measured more, ms.
_LEAST_MS = 1 / (1 << 20)
# The first cells are below what the fastest link needs for a packet, as young senders measure; the
# last ones hold what the slowest does with everybody on.
_BELOW_FASTEST, _ABOVE_SLOWEST = 0.5, 1.2
_MOST_CELLS = 400
# Where in a cell its paces are those of the scale-free rules. In the middle, a sender that is
# quicker than that slows down, and one that paces a little above the measured rate may not get into
# the next cell.
_MIDDLE = 0.5
_PLACES = (_MIDDLE, 0.25, 0.0)
_LARGEST_INCREMENT = 2**31 - 1

_Node = tuple[Sequence[tuple[int, float]], Action]


class ExportError(ValueError):
    """A table that cannot be exported; one sentence."""


def intervals_ms(spec: spec_pb2.DesignSpec, per_octave: int) -> tuple[list[float], list[float]]:
    """The middles of the cells of `rec_ewma` that senders of a specification's networks measure,
    and the bounds between them, in ms."""
    network = outline(spec).network
    slowest, fastest = (kilobits_per_packet(network) / rate for rate in extent(network.rate_mbps))
    low = fastest * _BELOW_FASTEST
    high = slowest * _ABOVE_SLOWEST * extent(network.senders)[1]
    cells = max(math.ceil(log2(high / low) * per_octave), 1)
    if cells > _MOST_CELLS:
        raise ExportError(
            f"{per_octave} cells an octave of these link rates and senders are {cells}; at most "
            f"{_MOST_CELLS} are allowed"
        )
    edges = [low * power(2.0, half / (2 * per_octave)) for half in range(2 * cells + 1)]
    return edges[1::2], edges[2:-1:2]


def exported(
    table: RuleTable, spec: spec_pb2.DesignSpec, per_octave: int, place: float = _MIDDLE
) -> RuleTable:
    """The absolute table that acts like a scale-free one where `rec_ewma` is in the middle of a
    cell and the smallest RTT is the median network's, but for increments, which are whole packets.

    With a lower `place` all paces are those of another part of a cell, from its lower bound, 0.
    Raises ExportError for a table that is absolute already or looks at age, or too many cells.
    """
    if not table.is_scale_free:
        raise ExportError("its rules are absolute already; convert writes them as .dna")
    if _AGE in table.signals:
        raise ExportError(
            "it looks at age, which a .dna file cannot say; design it with slow_rec_ratio in place "
            "of age"
        )
    middles, bounds = intervals_ms(spec, per_octave)
    rtt_ms = quantile(outline(spec).network.rtt_ms, 0.5)
    start = table.action(table.find((0.0, 0.0, 0.0, 0.0)))
    start = start._replace(window_increment=_whole(start.window_increment))
    # Senders that have measured nothing have a rule beside the cells.
    template = table.nodes()
    first_thresholds, _ = template[0]
    if start_rule(table) == 0 and len(first_thresholds) == 1:
        template = template[2:]
    quicker = power(2.0, (place - _MIDDLE) / per_octave)
    largest = math.nextafter(table.domain_upper, 0)

    def cell(middle: float) -> list[_Node]:
        factors = {
            Per.NOTHING: 1.0,
            Per.INTERVAL: middle,
            Per.SMALLEST_RTT: rtt_ms,
            Per.PATH: rtt_ms / middle,
        }

        def scaled(axis: int, value: float) -> float:
            return min(value * factors[form_of(axis, table.rules).per], largest)

        return [
            (
                [(axis, scaled(axis, value)) for axis, value in thresholds],
                Action(
                    window_multiple=action.window_multiple,
                    window_increment=_whole(action.window_increment / 100 * rtt_ms / middle),
                    intersend_ms=action.intersend_ms * middle * quicker,
                ),
            )
            for thresholds, action in template
        ]

    def cells(first: int, last: int) -> list[_Node]:
        if first == last:
            return cell(middles[first])
        middle = (first + last) // 2
        divided: _Node = ([(_REC_EWMA, bounds[middle])], start)
        return [divided, *cells(first, middle), *cells(middle + 1, last)]

    nodes: list[_Node] = [([(_REC_EWMA, _LEAST_MS)], start), ([], start)]
    axes = sorted({*table.signals, _REC_EWMA})
    return RuleTable(axes, [*nodes, *cells(0, len(middles) - 1)], table.domain_upper)


def _whole(increment: float) -> float:
    return float(min(max(round(increment), -_LARGEST_INCREMENT), _LARGEST_INCREMENT))


def best_export(
    table: RuleTable,
    spec: spec_pb2.DesignSpec,
    per_octave: int,
    *,
    seed: int,
    specimens: int,
    evaluate: Evaluate,
    climb_steps: int = 0,
) -> RuleTable:
    """The export that scores best on networks that `seed` names: of several places of the paces,
    and, where `climb_steps` are given, of what the best of them has climbed to as well. Raises
    ExportError."""

    def score(absolute: RuleTable) -> float:
        trial = evaluate_table(spec, absolute, seed=seed, specimens=specimens, evaluate=evaluate)
        found = trial.summary().score
        return -math.inf if found is None else found.mean

    exports = {place: exported(table, spec, per_octave, place) for place in _PLACES}
    scores = {place: score(absolute) for place, absolute in exports.items()}
    place = max(_PLACES, key=scores.__getitem__)
    if climb_steps == 0:
        return exports[place]
    climbed = tied_climb(
        table, spec, per_octave, place, seed=seed, steps=climb_steps, evaluate=evaluate
    )
    absolute = exported(climbed, spec, per_octave, place)
    return absolute if score(absolute) > scores[place] else exports[place]


# A tied climb: the copies of a rule move together, each relative to its cell.
#
# An export has hundreds of rules, each of which sees too little to know where to go, and copies
# that drift apart are no longer one rule for every rate. So what is perturbed and moved is the
# scale-free table, and what is simulated its export.
_PAIRS, _SPECIMENS_A_PAIR = 16, 2
_PERTURBATION, _STEP_SIZE = 0.08, 0.01
_AVERAGING = 0.95
# As many usual differences are the most that one counts as.
_FREAK = 5.0


def tied_climb(
    table: RuleTable,
    spec: spec_pb2.DesignSpec,
    per_octave: int,
    place: float,
    *,
    seed: int,
    steps: int,
    evaluate: Evaluate,
) -> RuleTable:
    """The scale-free table whose export scores better than its own, after so many steps of the
    joint search on fresh networks that `seed` names. Raises ExportError."""
    space = ActionSpace(spec.search.joint, table.rules)
    climb = Climb.start(table, space)
    settings = Settings(_PERTURBATION, _STEP_SIZE, _PAIRS * _SPECIMENS_A_PAIR, _AVERAGING)

    def scores(coordinates: Coordinates, networks: int) -> list[float | None]:
        moved = space.with_actions(climb.table, space.clamped(coordinates))
        absolute = exported(moved, spec, per_octave, place)
        trial = evaluate_table(
            spec, absolute, seed=networks, specimens=_SPECIMENS_A_PAIR, evaluate=evaluate
        )
        return [result.score for result in trial.results]

    for step in range(steps):
        pairs: list[tuple[Coordinates, float]] = []
        for pair in range(_PAIRS):
            networks = remy_simulator.mix(seed, step, pair)
            signs = perturbation_noise(networks, pair, table.rule_count)
            noise = np.array(signs).reshape(-1, 3)
            up = scores(climb.coordinates + _PERTURBATION * noise, networks)
            down = scores(climb.coordinates - _PERTURBATION * noise, networks)
            pairs.append((noise, _half_difference(up, down)))
        climb = ascend(climb, _samples(pairs, climb.regions), settings, space)
    return space.with_rounded_actions(climb.table, climb.average)


def _half_difference(up: Sequence[float | None], down: Sequence[float | None]) -> float:
    """Of the mean scores of a pair; not a number where no network has a score of both."""
    differences = [
        one - other
        for one, other in zip(up, down, strict=True)
        if one is not None and other is not None
    ]
    return math.fsum(differences) / (2 * len(differences)) if differences else math.nan


def _samples(pairs: Sequence[tuple[Coordinates, float]], regions: Regions) -> GradientSamples:
    """What a step's pairs say about the gradient, of each its noise and half the difference."""
    differences = scaled_by_median(np.array([difference for _, difference in pairs])).tolist()
    known = [
        (noise, min(max(difference, -_FREAK), _FREAK) / _PERTURBATION)
        for (noise, _), difference in zip(pairs, differences, strict=True)
        if not math.isnan(difference)
    ]

    # Sums of signs, which are exact.
    of_regions = [
        (np.array([noise[first:behind].sum(axis=0) for first, behind in regions.ranges]), size)
        for noise, size in known
    ]
    return GradientSamples(
        _moments(known, len(pairs[0][0])), _moments(of_regions, len(regions.ranges))
    )


def _moments(samples: Sequence[tuple[Coordinates, float]], rows: int) -> Moments:
    """Of samples of so many rows, each a direction and a size, in the order of their pairs."""
    mean, squares = np.zeros((rows, 3)), np.zeros((rows, 3))
    for direction, size in samples:
        sample = direction.reshape(rows, 3) * size
        mean += sample
        squares += sample * sample
    count = max(len(samples), 1)
    return Moments(mean / count, squares / count**2)


@dataclass(frozen=True)
class ExportLoss:
    """The table and its export on the same networks."""

    scale_free: Summary
    exported: Summary
    #: Mean of the differences by specimen, exported minus scale-free.
    difference: Estimate | None


def measure_loss(
    spec: spec_pb2.DesignSpec,
    table: RuleTable,
    absolute: RuleTable,
    *,
    seed: int,
    specimens: int,
    evaluate: Evaluate,
) -> ExportLoss:
    """Both on the networks that `remy-farm evaluate` draws."""
    before, after = (
        evaluate_table(spec, each, seed=seed, specimens=specimens, evaluate=evaluate)
        for each in (table, absolute)
    )
    pairs = zip(before.results, after.results, strict=True)
    differences = [
        None if old.score is None or new.score is None else new.score - old.score
        for old, new in pairs
    ]
    return ExportLoss(before.summary(), after.summary(), estimate(differences))
