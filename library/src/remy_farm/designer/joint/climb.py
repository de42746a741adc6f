"""A climb: a point in the space of all actions, and what its steps so far have taught."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

import remy_simulator
from remy_farm.designer.actions import START_RULE, ActionSpace, Coordinates, has_start_rule
from remy_farm.designer.joint.gradient import GradientSamples, Moments, Regions
from remy_farm.designer.joint.schedule import USUAL, Memories, Settings
from remy_farm.designer.scoring import CheckpointError
from remy_farm.designer.search import restored_table
from remy_farm.designer.splitting import RuleMerge, Thresholds, merged
from remy_proto.v1 import checkpoint_pb2
from remy_simulator import RuleTable
from remy_simulator.messages import from_native

# Slopes: running averages of gradient samples, and which way they point

# Below this t-statistic a coordinate rests, or rarely used rules would walk at random; at 3
# standard errors beyond it a coordinate takes the longest step.
_DEAD_ZONE = 0.7
_FULL_STEP = 3.0
# What a divided rule's children keep: each will see an eighth of its samples.
_KEPT_BY_CHILDREN = 1 / 8


@dataclass(frozen=True)
class Slopes:
    """Averages by row (a rule or a region); arrays are never changed in place."""

    mean: Coordinates
    squares: Coordinates
    #: How many samples each row has averaged, in one column, for Adam's bias correction.
    samples: Coordinates

    @classmethod
    def unknown(cls, rows: int) -> Slopes:
        """Averages of no sample yet."""
        return cls(np.zeros((rows, 3)), np.zeros((rows, 3)), np.zeros((rows, 1)))

    def after(self, samples: Moments, memories: Memories = USUAL, width: int = 1) -> Slopes:
        """The averages with the samples of another step, which counts as `width`."""
        return Slopes(
            memories.slopes * self.mean + (1 - memories.slopes) * samples.mean,
            memories.squares * self.squares + (1 - memories.squares) * samples.squares,
            self.samples + width,
        )

    def direction(self, memories: Memories = USUAL, width: int = 1) -> Coordinates:
        """From -1 to 1 by coordinate: by how much the slope stands out of its noise."""
        errors = np.sqrt(self.squares * memories.slope_variance)
        t = np.divide(self.mean, errors, out=np.zeros_like(self.mean), where=errors > 0)
        # Few numbers differ: rules of one division share theirs.
        counts, places = np.unique(self.samples, return_inverse=True)
        factors = np.array([_correction(memories, count / width) for count in counts.tolist()])
        t = t * factors[places.reshape(-1, 1)]
        beyond = np.maximum(np.abs(t) - _DEAD_ZONE, 0.0) / _FULL_STEP
        direction: Coordinates = np.sign(t) * np.minimum(beyond, 1.0)
        return direction

    def divided(self, row: int, children: int) -> Slopes:
        """The rules' slopes with one rule's row replaced by its children's."""
        return Slopes(
            divided(self.mean, row, children, _KEPT_BY_CHILDREN),
            divided(self.squares, row, children, _KEPT_BY_CHILDREN),
            divided(self.samples, row, children),
        )

    def with_row(self, place: int, other: Slopes, row: int) -> Slopes:
        """These slopes with a row of others' inserted before `place`."""
        return Slopes(
            np.insert(self.mean, place, other.mean[row], axis=0),
            np.insert(self.squares, place, other.squares[row], axis=0),
            np.insert(self.samples, place, other.samples[row], axis=0),
        )


def _correction(memories: Memories, samples: float) -> float:
    """What a t-statistic is too large by, after so many samples: the average of the slopes has
    forgotten that it began at zero when that of their squares has not (Kingma and Ba 2015)."""
    slopes = 1 - remy_simulator.power(memories.slopes, 2 * samples)
    return math.sqrt((1 - remy_simulator.power(memories.squares, samples)) / slopes)


def divided(rows: Coordinates, row: int, children: int, kept: float = 1.0) -> Coordinates:
    """`rows` with one of them replaced by `children` copies, times `kept`."""
    copies = np.repeat(rows[row : row + 1] * kept, children, axis=0)
    return np.concatenate([rows[:row], copies, rows[row + 1 :]])


@dataclass(frozen=True)
class Climb:
    """The state between two steps. Arrays have one row a rule and are never changed in place."""

    #: Structure, with the actions at `coordinates`, window increments not rounded.
    table: RuleTable
    coordinates: Coordinates
    #: Slopes by rule, and by region: when all rules below an inner node move together.
    rules: Slopes
    branches: Slopes
    #: The inner nodes.
    regions: Regions
    #: Running average of the coordinates: what is published (Polyak averaging).
    average: Coordinates
    #: Steps made.
    steps: int = 0
    #: How many had been made when a rule was last divided.
    last_split: int = 0
    #: Steps since any coordinate moved.
    resting: int = 0
    #: Steps made when a schedule was last walked to its end, where that is kept; 0 if none was.
    completed: int = 0
    #: What the next steps perturb, where they were asked for while others were simulated: tables of
    #: one structure. None where nothing was asked for yet: then that is `table`.
    delayed: tuple[RuleTable, ...] = ()

    @classmethod
    def start(cls, table: RuleTable, space: ActionSpace) -> Climb:
        """A climb from a table."""
        coordinates = space.coordinates(table)
        regions = Regions.of(table)
        return cls(
            table=space.with_actions(table, coordinates),
            coordinates=coordinates,
            rules=Slopes.unknown(table.rule_count),
            branches=Slopes.unknown(len(regions.ranges)),
            regions=regions,
            average=coordinates.copy(),
        )

    def split(self, rule: int, thresholds: Thresholds) -> Climb:
        """The climb with one rule divided; its children begin where it was, and what was known of
        its slope is known of the region that it becomes."""
        children = 1 << len(thresholds)
        table = self.table.split(rule, thresholds)
        # In pre-order, behind the inner nodes above the rule and those to its left.
        place = len([first for first, _ in self.regions.ranges if first <= rule])
        return replace(
            self,
            table=table,
            coordinates=divided(self.coordinates, rule, children),
            rules=self.rules.divided(rule, children),
            branches=self.branches.with_row(place, self.rules, rule),
            regions=Regions.of(table),
            average=divided(self.average, rule, children),
            last_split=self.steps,
        )

    def merged(
        self, merge: RuleMerge, uses: Sequence[float], space: ActionSpace
    ) -> tuple[Climb, list[float]]:
        """The climb without a rule, given how much each is used, and how much they are then.

        A single neighbour meets the rule where both are on average; several stay where they are.
        """
        table, rules, inner = merged(self.table, merge)
        gone, neighbours = merge.rule, merge.neighbours
        total = math.fsum(uses[other] for other in neighbours)
        after = list(uses)
        for other in neighbours:
            share = uses[other] / total if total > 0 else 1 / len(neighbours)
            after[other] += uses[gone] * share
        weight = uses[gone] / (uses[gone] + total) if uses[gone] > 0 else 0.0
        is_single = len(neighbours) == 1

        def met(rows: Coordinates) -> Coordinates:
            rows = rows.copy()
            if is_single:
                rows[neighbours[0]] += weight * (rows[gone] - rows[neighbours[0]])
            return rows[rules]

        def of_both(rows: Coordinates) -> Coordinates:
            rows = rows.copy()
            if is_single:
                # The slope when both move is the sum of theirs, and so is its variance.
                rows[neighbours[0]] += rows[gone]
            return rows[rules]

        def or_new(rows: Coordinates) -> Coordinates:
            return np.concatenate([rows, np.zeros((1, rows.shape[1]))])[inner]

        coordinates = met(self.coordinates)
        known, branches = self.rules, self.branches
        climb = replace(
            self,
            table=space.with_actions(table, coordinates),
            coordinates=coordinates,
            rules=Slopes(of_both(known.mean), of_both(known.squares), known.samples[rules]),
            branches=Slopes(
                or_new(branches.mean), or_new(branches.squares), or_new(branches.samples)
            ),
            regions=Regions.of(table),
            average=met(self.average),
        )
        return climb, [after[rule] for rule in rules]

    def published(self, space: ActionSpace) -> RuleTable:
        """The table at the running average, window increments rounded."""
        return space.with_rounded_actions(self.table, self.average)

    def to_message(self) -> checkpoint_pb2.Climb:
        return checkpoint_pb2.Climb(
            table=from_native(self.table),
            coordinates=_flat(self.coordinates),
            average=_flat(self.average),
            rule_slopes=_flat(self.rules.mean),
            rule_squares=_flat(self.rules.squares),
            region_slopes=_flat(self.branches.mean),
            region_squares=_flat(self.branches.squares),
            steps=self.steps,
            last_split=self.last_split,
            rule_samples=map(int, self.rules.samples.ravel()),
            region_samples=map(int, self.branches.samples.ravel()),
            resting=self.resting or None,
            completed=self.completed or None,
            delayed=map(from_native, self.delayed),
        )

    @classmethod
    def from_message(cls, message: checkpoint_pb2.Climb) -> Climb:
        """The inverse. Raises CheckpointError for what `to_message` never writes."""
        table = restored_table(message.table)
        regions = Regions.of(table)
        rules, branches = table.rule_count, len(regions.ranges)
        delayed = tuple(map(restored_table, message.delayed))
        if any(each.rule_count != rules for each in delayed):
            raise CheckpointError(
                "the checkpoint holds tables that steps perturb whose rules are not the climb's"
            )
        return cls(
            table=table,
            coordinates=_rows(message.coordinates, rules),
            rules=Slopes(
                _rows(message.rule_slopes, rules),
                _rows(message.rule_squares, rules),
                _rows(message.rule_samples, rules, 1),
            ),
            branches=Slopes(
                _rows(message.region_slopes, branches),
                _rows(message.region_squares, branches),
                _rows(message.region_samples, branches, 1),
            ),
            regions=regions,
            average=_rows(message.average, rules),
            steps=message.steps,
            last_split=message.last_split,
            resting=message.resting,
            completed=message.completed,
            delayed=delayed,
        )


def _flat(rows: Coordinates) -> list[float]:
    flat: list[float] = rows.ravel().tolist()
    return flat


def _rows(values: Iterable[float], rows: int, width: int = 3) -> Coordinates:
    array = np.array(list(values), dtype=np.float64)
    if array.size != width * rows:
        raise CheckpointError(
            f"the checkpoint has {array.size} numbers where {rows} rules or regions need "
            f"{width * rows}"
        )
    if not np.isfinite(array).all():
        raise CheckpointError("the checkpoint has numbers that are not finite where a climb stands")
    return array.reshape(rows, width)


def ascend(
    climb: Climb,
    samples: GradientSamples,
    settings: Settings,
    space: ActionSpace,
) -> Climb:
    """The climb after one step: of each rule by itself, and of each region as a whole.

    Coordinates whose slope stands out of its noise move, the others rest.
    Rules just divided from one another mostly want the same, but each sees too little to know.
    Their region's slope is the sum of theirs, and stands out of the noise long before.
    """
    memories = settings.memories
    rules = climb.rules.after(samples.rules, memories, settings.width)
    branches = climb.branches.after(samples.regions, memories, settings.width)
    directions = climb.regions.spread(
        branches.direction(memories, settings.width), rules.direction(memories, settings.width)
    )
    if has_start_rule(climb.table):
        # It keeps no window: what it kept it would add to at each ACK of an earlier on period.
        directions[START_RULE, 0] = 0.0
    coordinates = space.clamped(climb.coordinates + settings.step_size * directions)
    average = settings.averaging * climb.average + (1 - settings.averaging) * coordinates
    return replace(
        climb,
        table=space.with_actions(climb.table, coordinates),
        coordinates=coordinates,
        rules=rules,
        branches=branches,
        average=average,
        steps=climb.steps + settings.width,
        resting=0 if directions.any() else climb.resting + 1,
        delayed=(),
    )
