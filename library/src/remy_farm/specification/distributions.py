"""Distributions of a quantity: what it may be, its ends and its quantiles."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import remy_simulator
from remy_proto.v1 import spec_pb2

# Numpy is loaded by who draws: most commands only read what a specification says.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    #: One number a specimen. What is done to all of them at a time has the bits of one by one.
    Numbers = NDArray[np.float64]


def is_varied(distribution: spec_pb2.Distribution) -> bool:
    """Whether draws from the distribution differ."""
    return distribution.WhichOneof("kind") not in (None, "exact")


def quantile(distribution: spec_pb2.Distribution, probability: float) -> float:
    """The value below which `probability`, in [0, 1), of the distribution lies.

    Never outside of the distribution's ends, whatever is rounded on the way.
    """
    import numpy as np

    return float(quantiles(distribution, np.array([probability]))[0])


def quantiles(distribution: spec_pb2.Distribution, probabilities: Numbers) -> Numbers:
    """The values below which each of several probabilities of the distribution lies."""
    import numpy as np

    match distribution.WhichOneof("kind"):
        case "uniform":
            low, high = distribution.uniform.low, distribution.uniform.high
            return np.clip(low + probabilities * (high - low), low, high)
        case "log_uniform":
            low, high = distribution.log_uniform.low, distribution.log_uniform.high
            width = remy_simulator.log(high) - remy_simulator.log(low)
            # Numpy's own exponential is not the same on all machines.
            growth = [remy_simulator.exp(each) for each in (probabilities * width).tolist()]
            return np.clip(low * np.array(growth), low, high)
        case "integer_uniform":
            first, last = distribution.integer_uniform.low, distribution.integer_uniform.high
            places = np.floor(probabilities * (last - first + 1))
            return np.asarray(np.minimum(first + places, last))
        case "list":
            values = np.array(distribution.list.values)
            place = (probabilities * len(values)).astype(np.intp)
            return values[np.minimum(place, len(values) - 1)]
        case _:
            return np.full(len(probabilities), distribution.exact)


def extent(distribution: spec_pb2.Distribution) -> tuple[float, float]:
    """The smallest and the largest value that can be drawn; 0 where nothing can."""
    match distribution.WhichOneof("kind"):
        case "uniform" | "log_uniform" | "integer_uniform" as kind:
            limits = getattr(distribution, kind)
            return limits.low, limits.high
        case "list":
            values = distribution.list.values or [0.0]
            return min(values), max(values)
        case _:
            return distribution.exact, distribution.exact


class Quantity(IntEnum):
    """The quantity that a draw is for: the last element of its path, so that no two share a draw.

    The numbers are part of what a seed means, and never change.
    """

    KEY = 0
    LINK_RATE = 1
    RTT = 2
    SENDERS = 3
    BUFFER = 4
    LOSS = 5
    ON = 6
    OFF = 7
    SHUFFLE = 8
    JITTER = 9
    TIMESTAMP_RESOLUTION = 10
    JITTER_PERCENTILE_99 = 11
    BUNCH = 12
    DELAYED_ACK = 13
    MODEL = 14
    ARRIVAL = 15
    RTT_OFFSET = 16
    REORDERING = 17
    REORDERING_DELAY = 18
    LOAD = 19
