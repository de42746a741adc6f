"""Exports a scale-free table as an absolute one, which a .dna file can hold.

The range of measured packet intervals is divided into cells. In each cell the export has a copy of
all rules, with actions in absolute units. A tied climb then improves the copies together, and the
loss in score is measured.
"""

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
# Lower bound of measured intervals, in ms; rec_ewma is 0 before the first measurement.
_MIN_MEASURED_MS = 1 / (1 << 20)
# The cells cover intervals from half a packet time of the fastest link, which young senders
# measure, to 1.2 times that of the slowest link shared by all senders.
_BELOW_FASTEST, _ABOVE_SLOWEST = 0.5, 1.2
_MAX_CELLS = 400
# Position in a cell, from 0 to 1, at which its paces equal those of the scale-free rules. At the
# middle, a sender with a shorter interval slows down, and one that paces slightly faster than the
# measured rate may not reach the next cell. Lower positions may therefore score better.
_MIDDLE = 0.5
_POSITIONS = (_MIDDLE, 0.25, 0.0)
_LARGEST_INCREMENT = 2**31 - 1

_Node = tuple[Sequence[tuple[int, float]], Action]


class ExportError(ValueError):
    """A table cannot be exported. The message is one sentence for the user."""


def intervals_ms(spec: spec_pb2.DesignSpec, per_octave: int) -> tuple[list[float], list[float]]:
    """Returns the middles of the cells of `rec_ewma`, and the bounds between them, in ms.

    The cells cover the intervals that senders measure on the specification's networks.
    """
    network = outline(spec).network
    slowest, fastest = (kilobits_per_packet(network) / rate for rate in extent(network.rate_mbps))
    low = fastest * _BELOW_FASTEST
    high = slowest * _ABOVE_SLOWEST * extent(network.senders)[1]
    cells = max(math.ceil(log2(high / low) * per_octave), 1)
    if cells > _MAX_CELLS:
        raise ExportError(
            f"{per_octave} cells per octave make {cells} cells for these link rates and senders; "
            f"at most {_MAX_CELLS} are allowed"
        )
    edges = [low * power(2.0, half / (2 * per_octave)) for half in range(2 * cells + 1)]
    return edges[1::2], edges[2:-1:2]


def exported(
    table: RuleTable, spec: spec_pb2.DesignSpec, per_octave: int, position: float = _MIDDLE
) -> RuleTable:
    """Returns the absolute table of a scale-free one.

    If `rec_ewma` is at `position` of a cell (0 is its lower bound) and the minimum RTT is that of
    the median network, senders pace as with the scale-free table. Windows are those of the middle
    of the cell, with whole increments. Raises ExportError if the table is absolute or uses the
    signal age, or for too many cells.
    """
    if not table.is_scale_free:
        raise ExportError("its rules are already absolute; convert writes them as .dna")
    if table.path_model is not None:
        raise ExportError(
            "it has a path model, which a .dna file cannot hold; export its rules alone "
            "(--rules-alone, or Table.without_path_model)"
        )
    if _AGE in table.signals:
        raise ExportError(
            "it uses the signal age, which a .dna file cannot hold; design it with slow_rec_ratio "
            "in place of age"
        )
    middles, bounds = intervals_ms(spec, per_octave)
    rtt_ms = quantile(outline(spec).network.rtt_ms, 0.5)
    start = table.action(table.find((0.0, 0.0, 0.0, 0.0)))
    start = start._replace(window_increment=_whole(start.window_increment))
    # The start rule is not in the cells.
    template = table.nodes()
    first_thresholds, _ = template[0]
    if start_rule(table) == 0 and len(first_thresholds) == 1:
        template = template[2:]
    pace_factor = power(2.0, (position - _MIDDLE) / per_octave)
    largest = math.nextafter(table.domain_upper, 0)

    def cell(middle: float) -> list[_Node]:
        factors = {
            Per.NOTHING: 1.0,
            Per.INTERVAL: middle,
            Per.SMALLEST_RTT: rtt_ms,
            Per.BDP: rtt_ms / middle,
        }

        def scaled(axis: int, value: float) -> float:
            return min(value * factors[form_of(axis, table.rules).per], largest)

        return [
            (
                [(axis, scaled(axis, value)) for axis, value in thresholds],
                Action(
                    window_multiple=action.window_multiple,
                    window_increment=_whole(action.window_increment / 100 * rtt_ms / middle),
                    intersend_ms=action.intersend_ms * middle * pace_factor,
                ),
            )
            for thresholds, action in template
        ]

    def cells(first: int, last: int) -> list[_Node]:
        if first == last:
            return cell(middles[first])
        middle = (first + last) // 2
        inner: _Node = ([(_REC_EWMA, bounds[middle])], start)
        return [inner, *cells(first, middle), *cells(middle + 1, last)]

    nodes: list[_Node] = [([(_REC_EWMA, _MIN_MEASURED_MS)], start), ([], start)]
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
    """Returns the export with the best score on networks drawn with `seed`.

    Compares exports with the paces at several positions of a cell. With `climb_steps` it also
    compares the best of them with its improvement by a tied climb. Raises ExportError.
    """

    def score(absolute: RuleTable) -> float:
        trial = evaluate_table(spec, absolute, seed=seed, specimens=specimens, evaluate=evaluate)
        result = trial.summary().score
        return -math.inf if result is None else result.mean

    exports = {position: exported(table, spec, per_octave, position) for position in _POSITIONS}
    scores = {position: score(absolute) for position, absolute in exports.items()}
    position = max(_POSITIONS, key=scores.__getitem__)
    if climb_steps == 0:
        return exports[position]
    climbed = tied_climb(
        table, spec, per_octave, position, seed=seed, steps=climb_steps, evaluate=evaluate
    )
    absolute = exported(climbed, spec, per_octave, position)
    return absolute if score(absolute) > scores[position] else exports[position]


# A tied climb: all copies of a rule move together
#
# An export has hundreds of rules, each with too few samples for a significant slope, and copies
# that move apart would no longer act the same at every rate. The climb therefore perturbs and moves
# the scale-free table, and simulates its export.
_PAIRS, _SPECIMENS_PER_PAIR = 16, 2
_PERTURBATION, _STEP_SIZE = 0.08, 0.01
_AVERAGE_DECAY = 0.95
# Score differences are clipped at this multiple of their median size.
_OUTLIER_LIMIT = 5.0


def tied_climb(
    table: RuleTable,
    spec: spec_pb2.DesignSpec,
    per_octave: int,
    position: float,
    *,
    seed: int,
    steps: int,
    evaluate: Evaluate,
) -> RuleTable:
    """Returns the scale-free table after `steps` steps that improve the score of its export.

    The steps are those of the joint search, on fresh networks drawn with `seed`. Raises
    ExportError.
    """
    space = ActionSpace(spec.search.joint, table.rules)
    climb = Climb.start(table, space)
    settings = Settings(_PERTURBATION, _STEP_SIZE, _PAIRS * _SPECIMENS_PER_PAIR, _AVERAGE_DECAY)

    def scores(coordinates: Coordinates, networks: int) -> list[float | None]:
        moved = space.with_actions(climb.table, space.clamped(coordinates))
        absolute = exported(moved, spec, per_octave, position)
        trial = evaluate_table(
            spec, absolute, seed=networks, specimens=_SPECIMENS_PER_PAIR, evaluate=evaluate
        )
        return [result.score for result in trial.results]

    for step in range(steps):
        pairs: list[tuple[Coordinates, float]] = []
        for pair in range(_PAIRS):
            networks = remy_simulator.mix(seed, step, pair)
            noise = np.array(perturbation_noise(networks, pair, table.rule_count)).reshape(-1, 3)
            up = scores(climb.coordinates + _PERTURBATION * noise, networks)
            down = scores(climb.coordinates - _PERTURBATION * noise, networks)
            pairs.append((noise, _half_difference(up, down)))
        climb = ascend(climb, _samples(pairs, climb.regions), settings, space)
    return space.with_rounded_actions(climb.table, climb.average)


def _half_difference(up: Sequence[float | None], down: Sequence[float | None]) -> float:
    """Returns half the difference of a pair's mean scores; NaN if no network has both scores."""
    differences = [
        one - other
        for one, other in zip(up, down, strict=True)
        if one is not None and other is not None
    ]
    return math.fsum(differences) / (2 * len(differences)) if differences else math.nan


def _samples(pairs: Sequence[tuple[Coordinates, float]], regions: Regions) -> GradientSamples:
    """Returns the gradient samples of a step from (noise, half the difference) of each pair."""
    differences = scaled_by_median(np.array([difference for _, difference in pairs])).tolist()
    known = [
        (noise, min(max(difference, -_OUTLIER_LIMIT), _OUTLIER_LIMIT) / _PERTURBATION)
        for (noise, _), difference in zip(pairs, differences, strict=True)
        if not math.isnan(difference)
    ]

    # The noise consists of signs, so the sums are exact.
    by_region = [
        (np.array([noise[first:end].sum(axis=0) for first, end in regions.ranges]), size)
        for noise, size in known
    ]
    return GradientSamples(
        _moments(known, len(pairs[0][0])), _moments(by_region, len(regions.ranges))
    )


def _moments(samples: Sequence[tuple[Coordinates, float]], rows: int) -> Moments:
    """Returns the moments of samples of `rows` rows; each sample is a direction and a factor."""
    mean, squares = np.zeros((rows, 3)), np.zeros((rows, 3))
    for direction, size in samples:
        sample = direction.reshape(rows, 3) * size
        mean += sample
        squares += sample * sample
    count = max(len(samples), 1)
    return Moments(mean / count, squares / count**2)


@dataclass(frozen=True)
class ExportLoss:
    """The results of a table and of its export on the same networks."""

    scale_free: Summary
    exported: Summary
    #: Mean over specimens of the score of the export minus that of the scale-free table.
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
    """Evaluates both tables on the networks that `remy-farm evaluate` draws with this seed."""
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
