"""The actions that are tried in place of a rule's present one (section 4.3, step 3).

"Evaluate roughly 100 candidate increments to the current action, increasing geometrically in
granularity as they get further from the current value ... taking the Cartesian product".
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from remy_farm.v1 import spec_pb2

#: An action: window multiple, window increment (packets), intersend time (ms).
Action = tuple[float, float, float]

# Steps up and down must cancel, or a multiple of 1.0000000000000002 would be out of bounds.
_DECIMALS = 12
# A .dna file holds whole packets.
_INCREMENT_DECIMALS = 0


@dataclass(frozen=True)
class Component:
    """How one component of an action is varied."""

    minimum: float
    maximum: float
    first_step: float
    factor: float
    steps: int
    initial: float
    decimals: int

    def alternatives(self, current: float) -> list[float]:
        """`current` and the values at geometric distances from it, within bounds, ascending."""
        values = {current}
        step = self.first_step
        for _ in range(self.steps):
            for value in (current - step, current + step):
                # Adding zero turns -0.0 into 0.0.
                rounded = round(value, self.decimals) + 0.0
                if self.minimum <= rounded <= self.maximum:
                    values.add(rounded)
            step *= self.factor
        return sorted(values)


@dataclass(frozen=True)
class ActionGrid:
    """The search's grid of actions."""

    window_multiple: Component
    window_increment: Component
    intersend_ms: Component

    @property
    def initial(self) -> Action:
        """The first rule's action."""
        return (
            self.window_multiple.initial,
            self.window_increment.initial,
            self.intersend_ms.initial,
        )

    def neighbours(self, action: Action) -> list[Action]:
        """The actions to try in place of `action`, without itself, in a fixed order."""
        multiple, increment, intersend_ms = action
        product = itertools.product(
            self.window_multiple.alternatives(multiple),
            self.window_increment.alternatives(increment),
            self.intersend_ms.alternatives(intersend_ms),
        )
        return [candidate for candidate in product if candidate != action]


def action_grid(spec: spec_pb2.PaperSearch) -> ActionGrid:
    """The grid that a (complete) specification asks for."""
    return ActionGrid(
        window_multiple=_component(spec.window_multiple, _DECIMALS),
        window_increment=_component(spec.window_increment, _INCREMENT_DECIMALS),
        intersend_ms=_component(spec.intersend_ms, _DECIMALS),
    )


def _component(spec: spec_pb2.ActionGrid, decimals: int) -> Component:
    return Component(
        minimum=spec.minimum,
        maximum=spec.maximum,
        first_step=spec.first_step,
        factor=spec.factor,
        steps=spec.steps,
        initial=spec.initial,
        decimals=decimals,
    )
