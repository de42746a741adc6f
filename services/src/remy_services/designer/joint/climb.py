"""A climb: a point in the space of all actions, and what its steps so far have taught."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from remy_farm.v1 import checkpoint_pb2
from remy_services.designer.actions import ActionSpace, Coordinates
from remy_services.designer.joint.gradient import GradientSamples, Moments, Regions
from remy_services.designer.joint.schedule import USUAL, Memories, Settings
from remy_services.designer.scoring import CheckpointError
from remy_services.designer.search import restored_table
from remy_services.designer.splitting import Thresholds
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

    @classmethod
    def unknown(cls, rows: int) -> Slopes:
        return cls(np.zeros((rows, 3)), np.zeros((rows, 3)))

    def after(self, samples: Moments, memories: Memories = USUAL) -> Slopes:
        """The averages with another step's samples."""
        return Slopes(
            memories.slopes * self.mean + (1 - memories.slopes) * samples.mean,
            memories.squares * self.squares + (1 - memories.squares) * samples.squares,
        )

    def direction(self, memories: Memories = USUAL) -> Coordinates:
        """From -1 to 1 by coordinate: by how much the slope stands out of its noise."""
        errors = np.sqrt(self.squares * memories.slope_variance)
        t = np.divide(self.mean, errors, out=np.zeros_like(self.mean), where=errors > 0)
        beyond = np.maximum(np.abs(t) - _DEAD_ZONE, 0.0) / _FULL_STEP
        direction: Coordinates = np.sign(t) * np.minimum(beyond, 1.0)
        return direction

    def divided(self, row: int, children: int) -> Slopes:
        """The rules' slopes with one rule's row replaced by its children's."""
        return Slopes(
            divided(self.mean, row, children, _KEPT_BY_CHILDREN),
            divided(self.squares, row, children, _KEPT_BY_CHILDREN),
        )

    def with_row(self, place: int, other: Slopes, row: int) -> Slopes:
        """These slopes with a row of others' inserted before `place`."""
        return Slopes(
            np.insert(self.mean, place, other.mean[row], axis=0),
            np.insert(self.squares, place, other.squares[row], axis=0),
        )


def divided(rows: Coordinates, row: int, children: int, kept: float = 1.0) -> Coordinates:
    """`rows` with one of them replaced by `children` copies, times `kept`."""
    copies = np.repeat(rows[row : row + 1] * kept, children, axis=0)
    return np.concatenate([rows[:row], copies, rows[row + 1 :]])


# The climb


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
    #: Running average of the size of a difference between antithetic scores; 0 before the first.
    spread: float = 0.0
    #: Steps made.
    steps: int = 0
    #: How many had been made when a rule was last divided.
    last_split: int = 0

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
            spread=self.spread,
            steps=self.steps,
            last_split=self.last_split,
        )

    @classmethod
    def from_message(cls, message: checkpoint_pb2.Climb) -> Climb:
        """The inverse. Raises CheckpointError for what `to_message` never writes."""
        table = restored_table(message.table)
        regions = Regions.of(table)
        rules, branches = table.rule_count, len(regions.ranges)
        return cls(
            table=table,
            coordinates=_rows(message.coordinates, rules),
            rules=Slopes(_rows(message.rule_slopes, rules), _rows(message.rule_squares, rules)),
            branches=Slopes(
                _rows(message.region_slopes, branches), _rows(message.region_squares, branches)
            ),
            regions=regions,
            average=_rows(message.average, rules),
            spread=message.spread,
            steps=message.steps,
            last_split=message.last_split,
        )


def _flat(rows: Coordinates) -> list[float]:
    flat: list[float] = rows.ravel().tolist()
    return flat


def _rows(values: Iterable[float], rows: int) -> Coordinates:
    array = np.array(list(values), dtype=np.float64)
    if array.size != 3 * rows:
        raise CheckpointError(
            f"the checkpoint has {array.size} numbers where {rows} rules or regions need {3 * rows}"
        )
    if not np.isfinite(array).all():
        raise CheckpointError("the checkpoint has numbers that are not finite where a climb stands")
    return array.reshape(rows, 3)


# One step uphill


def ascend(climb: Climb, samples: GradientSamples, settings: Settings, space: ActionSpace) -> Climb:
    """The climb after one step: of each rule by itself, and of each region as a whole.

    Coordinates whose slope stands out of its noise move, the others rest.
    Rules just divided from one another mostly want the same, but each sees too little to know.
    Their region's slope is the sum of theirs, and stands out of the noise long before.
    """
    memories = settings.memories
    rules = climb.rules.after(samples.rules, memories)
    branches = climb.branches.after(samples.regions, memories)
    directions = climb.regions.spread(branches.direction(memories), rules.direction(memories))
    coordinates = space.clamped(climb.coordinates + settings.step_size * directions)
    average = settings.averaging * climb.average + (1 - settings.averaging) * coordinates
    return replace(
        climb,
        table=space.with_actions(climb.table, coordinates),
        coordinates=coordinates,
        rules=rules,
        branches=branches,
        average=average,
        spread=samples.spread,
        steps=climb.steps + 1,
    )
