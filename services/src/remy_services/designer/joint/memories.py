"""How much of its past each running average of a climb keeps at a step."""

from __future__ import annotations

from dataclasses import dataclass

import remy_simulator


@dataclass(frozen=True)
class Memories:
    """Weights of the past, from 0 to 1."""

    #: In the averages of the gradient's samples, and of their squares.
    slopes: float = 0.9
    squares: float = 0.98
    #: In the average of the size of a difference between antithetic scores.
    spread: float = 0.95
    #: In the average of the coordinates, while growing and while refining.
    growing: float = 0.97
    refining: float = 0.99

    @property
    def slope_variance(self) -> float:
        """Variance of the average of independent samples' means, relative to one of them."""
        return (1 - self.slopes) / (1 + self.slopes)

    def over(self, steps: float) -> Memories:
        """What is left of the past after `steps` such steps: the weights for one that counts as
        many."""
        if steps == 1:
            return self
        return Memories(
            slopes=remy_simulator.power(self.slopes, steps),
            squares=remy_simulator.power(self.squares, steps),
            spread=remy_simulator.power(self.spread, steps),
            growing=remy_simulator.power(self.growing, steps),
            refining=remy_simulator.power(self.refining, steps),
        )


#: Where a step has the specimens that the settings were chosen for.
USUAL = Memories()
