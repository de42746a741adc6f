"""Perturbs the actions of a table as the simulator does, in Python."""

from __future__ import annotations

import math

from remy_proto.v1 import evaluation_pb2
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
    table: RuleTable,
    seed: int,
    bounds: evaluation_pb2.ActionBounds,
    perturbation: evaluation_pb2.Perturbation,
    specimen_key: int,
) -> list[Action]:
    """Returns the perturbed actions on one specimen.

    Window increments are rounded up or down at random. Both perturbations of an antithetic pair
    share that draw, which is not the simulator's.
    """
    native = native_bounds(bounds)
    noise = iter(perturbation_noise(seed, specimen_key, table.rule_count))
    scale = perturbation.scale
    actions = []
    for rule in range(table.rule_count):
        multiple, increment, intersend = to_coordinates(table.action(rule), native)
        moved = (
            multiple + scale * next(noise),
            increment + scale * next(noise),
            intersend + scale * next(noise),
        )
        window_multiple, window_increment, intersend_ms = from_coordinates(moved, native)
        draw = uniform(seed, specimen_key, rule, _ROUNDING)
        actions.append((window_multiple, float(math.floor(window_increment + draw)), intersend_ms))
    return actions
