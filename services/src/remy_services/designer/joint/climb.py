"""A climb: a point in the space of all actions, and what its steps so far have taught."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from remy_farm.v1 import checkpoint_pb2
from remy_services.designer.action_space import ActionSpace, Coordinates
from remy_services.designer.errors import CheckpointError
from remy_services.designer.joint.regions import Regions
from remy_services.designer.joint.slopes import Slopes, divided
from remy_services.designer.splitting import Thresholds
from remy_simulator import RuleTable
from remy_simulator.messages import from_native, to_native


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
        try:
            table = to_native(message.table)
        except ValueError as error:
            raise CheckpointError(f"the checkpoint holds a broken table: {error}") from error
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
