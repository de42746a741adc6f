"""The simulator's perturbations of a table, written down in Python."""

from __future__ import annotations

import math

from remy_farm.v1 import evaluation_pb2
from remy_simulator import (
    RuleTable,
    from_coordinates,
    perturbation_noise,
    to_coordinates,
    uniform,
)
from remy_simulator.messages import native_bounds

Action = tuple[float, float, float]

_ROUNDING = 1


def perturbed_actions(
    table: RuleTable, perturbation: evaluation_pb2.Perturbation, specimen_key: int
) -> list[Action]:
    """The actions on one specimen. Increments are rounded up or down by a draw that antithetic
    perturbations share; it is not the simulator's draw."""
    bounds = native_bounds(perturbation.bounds)
    noise = iter(perturbation_noise(perturbation.seed, specimen_key, table.rule_count))
    actions = []
    for rule in range(table.rule_count):
        multiple, increment, intersend = to_coordinates(table.action(rule), bounds)
        moved = (
            multiple + perturbation.scale * next(noise),
            increment + perturbation.scale * next(noise),
            intersend + perturbation.scale * next(noise),
        )
        window_multiple, window_increment, intersend_ms = from_coordinates(moved, bounds)
        draw = uniform(perturbation.seed, specimen_key, rule, _ROUNDING)
        actions.append((window_multiple, float(math.floor(window_increment + draw)), intersend_ms))
    return actions
