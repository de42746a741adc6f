"""The climb of the joint search: one gradient ascent over the actions of all rules.

A climb follows Adam (Kingma and Ba 2015): it keeps exponential moving averages of the gradient and
of its square, corrects their bias, and moves each coordinate by at most one step size. Unlike Adam
it leaves a coordinate in place while its gradient is not significant.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

import remy_simulator
from remy_farm.designer.actions import START_RULE, ActionSpace, Coordinates, has_start_rule
from remy_farm.designer.joint.gradient import GradientSamples, Moments, Regions
from remy_farm.designer.joint.schedule import DEFAULT_DECAY_RATES, DecayRates, Settings
from remy_farm.designer.scoring import CheckpointError
from remy_farm.designer.search import restored_table
from remy_farm.designer.splitting import RuleMerge, Thresholds, merged
from remy_proto.v1 import checkpoint_pb2
from remy_simulator import RuleTable
from remy_simulator.messages import from_native

# Moving averages of the gradient, and the direction of ascent

# A coordinate does not move while its t-statistic is smaller than this. Without a dead zone the
# actions of rarely used rules would do a random walk.
_DEAD_ZONE = 0.7
# Standard errors beyond the dead zone at which a coordinate takes its longest step.
_FULL_STEP = 3.0
# Factor applied to the averages of a rule when they are copied to its eight children: each child
# is used for about an eighth of the look-ups.
_KEPT_BY_CHILDREN = 1 / 8


@dataclass(frozen=True)
class Slopes:
    """Moving averages of gradient samples, one row per rule or region.

    Arrays are never changed in place.
    """

    #: Adam's first moment.
    mean: Coordinates
    #: Adam's second moment.
    squares: Coordinates
    #: Number of samples that each row has averaged, in one column, for the bias correction.
    samples: Coordinates

    @classmethod
    def initial(cls, rows: int) -> Slopes:
        """Returns the averages before the first sample: all zero."""
        return cls(np.zeros((rows, 3)), np.zeros((rows, 3)), np.zeros((rows, 1)))

    def updated(
        self,
        samples: Moments,
        decay_rates: DecayRates = DEFAULT_DECAY_RATES,
        replaced_steps: int = 1,
    ) -> Slopes:
        """Returns the averages after a step that replaces `replaced_steps` scheduled ones."""
        return Slopes(
            decay_rates.beta1 * self.mean + (1 - decay_rates.beta1) * samples.mean,
            decay_rates.beta2 * self.squares + (1 - decay_rates.beta2) * samples.squares,
            self.samples + replaced_steps,
        )

    def direction(
        self, decay_rates: DecayRates = DEFAULT_DECAY_RATES, replaced_steps: int = 1
    ) -> Coordinates:
        """Returns the direction of ascent, from -1 to 1 per coordinate.

        The size grows with the t-statistic of the slope: 0 in the dead zone, 1 from `_FULL_STEP`
        standard errors beyond it.
        """
        errors = np.sqrt(self.squares * decay_rates.slope_variance)
        t = np.divide(self.mean, errors, out=np.zeros_like(self.mean), where=errors > 0)
        # The children of a split have the same count, so there are few distinct counts.
        counts, indices = np.unique(self.samples, return_inverse=True)
        factors = np.array(
            [_bias_correction(decay_rates, count / replaced_steps) for count in counts.tolist()]
        )
        t = t * factors[indices.reshape(-1, 1)]
        beyond = np.maximum(np.abs(t) - _DEAD_ZONE, 0.0) / _FULL_STEP
        direction: Coordinates = np.sign(t) * np.minimum(beyond, 1.0)
        return direction

    def divided(self, row: int, children: int) -> Slopes:
        """Returns the rules' slopes with one rule's row replaced by rows for its children."""
        return Slopes(
            divided(self.mean, row, children, _KEPT_BY_CHILDREN),
            divided(self.squares, row, children, _KEPT_BY_CHILDREN),
            divided(self.samples, row, children),
        )

    def with_inserted_row(self, index: int, source: Slopes, row: int) -> Slopes:
        """Returns these slopes with row `row` of `source` inserted before `index`."""
        return Slopes(
            np.insert(self.mean, index, source.mean[row], axis=0),
            np.insert(self.squares, index, source.squares[row], axis=0),
            np.insert(self.samples, index, source.samples[row], axis=0),
        )


def _bias_correction(decay_rates: DecayRates, samples: float) -> float:
    """Returns the factor that corrects a t-statistic for averages that start at zero.

    Both averages of Adam are biased towards zero at first (Kingma and Ba 2015). The second moment
    decays more slowly and so stays biased for longer, which makes early t-statistics too large.
    """
    variance_bias = 1 - remy_simulator.power(decay_rates.beta1, 2 * samples)
    return math.sqrt((1 - remy_simulator.power(decay_rates.beta2, samples)) / variance_bias)


def divided(rows: Coordinates, row: int, children: int, kept: float = 1.0) -> Coordinates:
    """Returns `rows` with one row replaced by `children` copies of it, times `kept`."""
    copies = np.repeat(rows[row : row + 1] * kept, children, axis=0)
    return np.concatenate([rows[:row], copies, rows[row + 1 :]])


@dataclass(frozen=True)
class Climb:
    """The state of a climb between two steps.

    Arrays have one row per rule (`region_slopes`: per region) and are never changed in place.
    """

    #: The rules with the actions at `coordinates`; window increments are not rounded.
    table: RuleTable
    coordinates: Coordinates
    #: Slope of each rule moved alone.
    rule_slopes: Slopes
    #: Slope of each region: of all rules below one inner node moved together.
    region_slopes: Slopes
    #: The inner nodes of the table.
    regions: Regions
    #: Moving average of the coordinates, which is what gets published (Polyak averaging).
    average: Coordinates
    #: Steps made.
    steps: int = 0
    #: Value of `steps` at the last split.
    last_split: int = 0
    #: Steps since any coordinate moved.
    stalled_steps: int = 0
    #: Value of `steps` when the climb last reached the end of a schedule; 0 if it never did.
    completed_steps: int = 0
    #: Tables that the next steps perturb, if their requests were made before earlier steps were
    #: finished (`steps_in_flight`). All have the structure of `table`. Empty if the next step
    #: perturbs `table`.
    tables_in_flight: tuple[RuleTable, ...] = ()

    @classmethod
    def start(cls, table: RuleTable, space: ActionSpace) -> Climb:
        """Returns a climb that starts from a table."""
        coordinates = space.coordinates(table)
        regions = Regions.of(table)
        return cls(
            table=space.with_actions(table, coordinates),
            coordinates=coordinates,
            rule_slopes=Slopes.initial(table.rule_count),
            region_slopes=Slopes.initial(len(regions.ranges)),
            regions=regions,
            average=coordinates.copy(),
        )

    def split(self, rule: int, thresholds: Thresholds) -> Climb:
        """Returns the climb after splitting one rule.

        The children start with the rule's coordinates. Their region inherits the rule's slopes.
        """
        children = 1 << len(thresholds)
        table = self.table.split(rule, thresholds)
        # Regions are in pre-order: the new one follows the inner nodes above the rule and those to
        # its left.
        index = len([first for first, _ in self.regions.ranges if first <= rule])
        return replace(
            self,
            table=table,
            coordinates=divided(self.coordinates, rule, children),
            rule_slopes=self.rule_slopes.divided(rule, children),
            region_slopes=self.region_slopes.with_inserted_row(index, self.rule_slopes, rule),
            regions=Regions.of(table),
            average=divided(self.average, rule, children),
            last_split=self.steps,
        )

    def merged(
        self, merge: RuleMerge, uses: Sequence[float], space: ActionSpace
    ) -> tuple[Climb, list[float]]:
        """Returns the climb after merging one rule into its neighbours, and the uses of each rule.

        `uses` holds the use of each rule before the merge. A single neighbour moves to the mean of
        both rules, weighted by use; several neighbours keep their coordinates.
        """
        table, rules, inner = merged(self.table, merge)
        removed, neighbours = merge.rule, merge.neighbours
        total = math.fsum(uses[other] for other in neighbours)
        uses_after = list(uses)
        for other in neighbours:
            share = uses[other] / total if total > 0 else 1 / len(neighbours)
            uses_after[other] += uses[removed] * share
        weight = uses[removed] / (uses[removed] + total) if uses[removed] > 0 else 0.0
        is_single = len(neighbours) == 1

        def merge_points(rows: Coordinates) -> Coordinates:
            rows = rows.copy()
            if is_single:
                rows[neighbours[0]] += weight * (rows[removed] - rows[neighbours[0]])
            return rows[rules]

        def add_slopes(rows: Coordinates) -> Coordinates:
            rows = rows.copy()
            if is_single:
                # When both rules move together, their slopes add up, and so do the variances.
                rows[neighbours[0]] += rows[removed]
            return rows[rules]

        def select_regions(rows: Coordinates) -> Coordinates:
            # Index -1, a new inner node, selects the row of zeros.
            return np.concatenate([rows, np.zeros((1, rows.shape[1]))])[inner]

        coordinates = merge_points(self.coordinates)
        by_rule, by_region = self.rule_slopes, self.region_slopes
        climb = replace(
            self,
            table=space.with_actions(table, coordinates),
            coordinates=coordinates,
            rule_slopes=Slopes(
                add_slopes(by_rule.mean), add_slopes(by_rule.squares), by_rule.samples[rules]
            ),
            region_slopes=Slopes(
                select_regions(by_region.mean),
                select_regions(by_region.squares),
                select_regions(by_region.samples),
            ),
            regions=Regions.of(table),
            average=merge_points(self.average),
        )
        return climb, [uses_after[rule] for rule in rules]

    def published(self, space: ActionSpace) -> RuleTable:
        """Returns the table to publish: the averaged coordinates, with rounded increments."""
        return space.with_rounded_actions(self.table, self.average)

    def to_message(self) -> checkpoint_pb2.Climb:
        return checkpoint_pb2.Climb(
            table=from_native(self.table),
            coordinates=_flat(self.coordinates),
            average=_flat(self.average),
            rule_slopes=_flat(self.rule_slopes.mean),
            rule_squares=_flat(self.rule_slopes.squares),
            region_slopes=_flat(self.region_slopes.mean),
            region_squares=_flat(self.region_slopes.squares),
            steps=self.steps,
            last_split=self.last_split,
            rule_samples=map(int, self.rule_slopes.samples.ravel()),
            region_samples=map(int, self.region_slopes.samples.ravel()),
            stalled_steps=self.stalled_steps or None,
            completed_steps=self.completed_steps or None,
            tables_in_flight=map(from_native, self.tables_in_flight),
        )

    @classmethod
    def from_message(cls, message: checkpoint_pb2.Climb) -> Climb:
        """Reads what `to_message` wrote. Raises CheckpointError for anything else."""
        table = restored_table(message.table)
        regions = Regions.of(table)
        rules, inner_nodes = table.rule_count, len(regions.ranges)
        in_flight = tuple(map(restored_table, message.tables_in_flight))
        for each in in_flight:
            if each.rule_count != rules:
                raise CheckpointError(
                    f"the checkpoint holds a table in flight with {each.rule_count} rules; "
                    f"its climb has {rules}"
                )
        return cls(
            table=table,
            coordinates=_rows(message.coordinates, rules),
            rule_slopes=Slopes(
                _rows(message.rule_slopes, rules),
                _rows(message.rule_squares, rules),
                _rows(message.rule_samples, rules, 1),
            ),
            region_slopes=Slopes(
                _rows(message.region_slopes, inner_nodes),
                _rows(message.region_squares, inner_nodes),
                _rows(message.region_samples, inner_nodes, 1),
            ),
            regions=regions,
            average=_rows(message.average, rules),
            steps=message.steps,
            last_split=message.last_split,
            stalled_steps=message.stalled_steps,
            completed_steps=message.completed_steps,
            tables_in_flight=in_flight,
        )


def _flat(rows: Coordinates) -> list[float]:
    flat: list[float] = rows.ravel().tolist()
    return flat


def _rows(values: Iterable[float], rows: int, width: int = 3) -> Coordinates:
    array = np.array(list(values), dtype=np.float64)
    if array.size != width * rows:
        raise CheckpointError(
            f"the checkpoint has {array.size} numbers for {rows} rules or regions; "
            f"they need {width * rows}"
        )
    if not np.isfinite(array).all():
        raise CheckpointError("the checkpoint's climb has coordinates that are not finite")
    return array.reshape(rows, width)


def ascend(
    climb: Climb,
    samples: GradientSamples,
    settings: Settings,
    space: ActionSpace,
) -> Climb:
    """Returns the climb after one step of gradient ascent.

    Each rule moves along its own slope and along the slopes of all regions that it lies in. After a
    split the children still need similar actions, but each sees too few samples for a significant
    slope. The slope of their region is the sum of theirs, so it becomes significant much sooner.
    """
    decay_rates = settings.decay_rates
    rule_slopes = climb.rule_slopes.updated(samples.rules, decay_rates, settings.replaced_steps)
    region_slopes = climb.region_slopes.updated(
        samples.regions, decay_rates, settings.replaced_steps
    )
    directions = climb.regions.add_to_rules(
        region_slopes.direction(decay_rates, settings.replaced_steps),
        rule_slopes.direction(decay_rates, settings.replaced_steps),
    )
    if has_start_rule(climb.table):
        # Its window multiple stays 0. The rule is applied again at each ACK of an earlier on
        # period, so that a window that it kept would grow without bound.
        directions[START_RULE, 0] = 0.0
    coordinates = space.clamped(climb.coordinates + settings.step_size * directions)
    decay = settings.average_decay
    average = decay * climb.average + (1 - decay) * coordinates
    return replace(
        climb,
        table=space.with_actions(climb.table, coordinates),
        coordinates=coordinates,
        rule_slopes=rule_slopes,
        region_slopes=region_slopes,
        average=average,
        steps=climb.steps + settings.replaced_steps,
        stalled_steps=0 if directions.any() else climb.stalled_steps + 1,
        tables_in_flight=(),
    )
