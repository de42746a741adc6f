"""Actions as points; docs/algorithm.md, "Coordinates of an action"."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from remy_farm.v1 import evaluation_pb2, spec_pb2
from remy_simulator import RuleTable, from_coordinates, to_coordinates
from remy_simulator.messages import native_bounds

#: One row a rule: window multiple, window increment, intersend.
Coordinates = NDArray[np.float64]
Action = tuple[float, float, float]


class ActionSpace:
    """The box of actions that a specification allows, and its coordinates."""

    def __init__(self, search: spec_pb2.JointSearch | spec_pb2.PatternSearch) -> None:
        self.bounds = evaluation_pb2.ActionBounds(
            window_multiple_minimum=search.window_multiple.minimum,
            window_multiple_maximum=search.window_multiple.maximum,
            window_increment_minimum=search.window_increment.minimum,
            window_increment_maximum=search.window_increment.maximum,
            intersend_minimum_ms=search.intersend_ms.minimum,
            intersend_maximum_ms=search.intersend_ms.maximum,
        )
        self._native = native_bounds(self.bounds)
        # The first coordinate falls as the window multiple rises.
        corners = np.array(
            [
                to_coordinates(self._corner("maximum", "minimum"), self._native),
                to_coordinates(self._corner("minimum", "maximum"), self._native),
            ]
        )
        self._lowest, self._highest = corners

    def coordinates(self, table: RuleTable) -> Coordinates:
        """The coordinates of a table's actions."""
        actions = [table.action(rule) for rule in range(table.rule_count)]
        return np.array([to_coordinates(action, self._native) for action in actions])

    def clamped(self, coordinates: Coordinates) -> Coordinates:
        """The nearest point in the box."""
        clamped: Coordinates = np.minimum(np.maximum(coordinates, self._lowest), self._highest)
        return clamped

    def with_actions(self, table: RuleTable, coordinates: Coordinates) -> RuleTable:
        """The table with the actions at `coordinates`, window increments not rounded."""
        return table.with_actions([self._action(row) for row in coordinates.tolist()])

    def with_rounded_actions(self, table: RuleTable, coordinates: Coordinates) -> RuleTable:
        """The same with whole window increments, as a .dna file holds them."""
        return table.with_actions([self.rounded_action(row) for row in coordinates.tolist()])

    def point(self, action: Action) -> list[float]:
        """The coordinates of one action."""
        return list(to_coordinates(action, self._native))

    def rounded_action(self, row: Sequence[float]) -> Action:
        """The action at a point, or at the nearest one in the box, its increment whole."""
        multiple, increment, intersend_ms = self._action(row)
        return (multiple, self.whole_increment(increment), intersend_ms)

    def whole_increment(self, increment: float) -> float:
        """The nearest whole window increment within the bounds."""
        least = math.ceil(self.bounds.window_increment_minimum)
        most = math.floor(self.bounds.window_increment_maximum)
        return float(min(max(round(increment), least), most))

    def _action(self, row: Sequence[float]) -> Action:
        multiple, increment, intersend = row
        return from_coordinates((multiple, increment, intersend), self._native)

    def _corner(self, multiple: str, rest: str) -> Action:
        bounds = self.bounds
        return (
            getattr(bounds, f"window_multiple_{multiple}"),
            getattr(bounds, f"window_increment_{rest}"),
            getattr(bounds, f"intersend_{rest}_ms"),
        )
