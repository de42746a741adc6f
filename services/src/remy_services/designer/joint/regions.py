"""The regions of a table as ranges of rules: what moves together when a whole branch moves.

Rules are numbered in pre-order, so that the rules below any node of the tree are neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from remy_services.designer.action_space import Coordinates
from remy_simulator import RuleTable


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
