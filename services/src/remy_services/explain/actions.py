"""Actions explained: what a sender under one of them does, their mean, how far apart they are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from remy_farm.v1 import evaluation_pb2
from remy_services.explain.tree import Action
from remy_services.spec.network import KILOBITS_PER_PACKET
from remy_simulator import from_coordinates, to_coordinates
from remy_simulator.messages import native_bounds

_LARGEST_WINDOW: Final = 1e6
# The coordinate of an intersend time is its logarithm: shorter times count as this one.
_SHORTEST_INTERSEND_MS: Final = 0.001


def settled_window_packets(action: Action) -> float | None:
    """Where the window settles if the action is applied for ever: increment / (1 - multiple).

    Within the 0 to 1,000,000 packets that a window is clamped to. None if it depends on where the
    window began, or if it grows without end.
    """
    multiple, increment, _ = action
    if multiple > 1 or (multiple == 1 and increment >= 0):
        return None
    if multiple == 1 or increment <= 0:
        return 0.0
    return min(increment / (1 - multiple), _LARGEST_WINDOW)


def pacing_rate_mbps(action: Action) -> float | None:
    """The rate that the intersend time allows, in Mbit/s; None if it sets no limit."""
    intersend_ms = action[2]
    rate = KILOBITS_PER_PACKET / intersend_ms if intersend_ms > 0 else math.inf
    return rate if rate < math.inf else None


class ActionScale:
    """The coordinates of docs/algorithm.md over the box that a set of actions spans.

    The box is wide enough for window multiples and increments of 0 to 1.
    """

    def __init__(self, actions: Iterable[Action]) -> None:
        known = list(actions)
        multiples = [_clamped(action[0]) for action in known]
        increments = [_clamped(action[1]) for action in known]
        times_ms = [max(action[2], _SHORTEST_INTERSEND_MS) for action in known]
        self._bounds = native_bounds(
            evaluation_pb2.ActionBounds(
                window_multiple_minimum=0.0,
                window_multiple_maximum=max(1.0, *multiples),
                window_increment_minimum=min(0.0, *increments),
                window_increment_maximum=max(1.0, *increments),
                intersend_minimum_ms=min(times_ms),
                intersend_maximum_ms=max(times_ms),
            )
        )

    def mean(self, actions: Sequence[Action], weights: Sequence[int]) -> Action:
        """The weighted mean in these coordinates, its window increment rounded to a whole number.

        Actions of weight 0 do not count, unless all have it: then all count alike. A component that
        is equal in all actions that count stays as it is, bit for bit.
        """
        if not any(weights):
            weights = [1] * len(actions)
        counted = [pair for pair in zip(actions, weights, strict=True) if pair[1]]
        total = sum(weight for _, weight in counted)
        points = [(to_coordinates(action, self._bounds), weight) for action, weight in counted]
        multiple, increment, intersend = (
            math.fsum(point[k] * weight for point, weight in points) / total for k in range(3)
        )
        centre = from_coordinates((multiple, increment, intersend), self._bounds)
        centre = (centre[0], float(round(centre[1])), centre[2])
        shared = [{action[k] for action, _ in counted} for k in range(3)]
        multiple, increment, intersend_ms = (
            values.pop() if len(values) == 1 else component
            for values, component in zip(shared, centre, strict=True)
        )
        return (multiple, increment, intersend_ms)

    def distance(self, first: Action, second: Action) -> float:
        """How far apart two actions are in these coordinates (Euclidean)."""
        a, b = to_coordinates(first, self._bounds), to_coordinates(second, self._bounds)
        return math.sqrt(math.fsum((x - y) * (x - y) for x, y in zip(a, b, strict=True)))


def _clamped(value: float) -> float:
    """What makes no difference to a window beyond a million packets has no weight in a mean."""
    return max(-_LARGEST_WINDOW, min(value, _LARGEST_WINDOW))
