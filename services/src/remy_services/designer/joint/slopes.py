"""Running averages of gradient samples, and which way they point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from remy_services.designer.action_space import Coordinates
from remy_services.designer.joint.gradient import Moments
from remy_services.designer.joint.memories import USUAL, Memories

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
