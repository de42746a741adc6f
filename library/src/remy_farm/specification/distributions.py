"""Distributions of a quantity: their extent and their quantiles."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import TYPE_CHECKING

from google.protobuf.message import Message

import remy_simulator
from remy_farm.specification.reading import key_of
from remy_farm.specification.schema import child_path
from remy_proto.v1 import spec_pb2

# Numpy is imported inside the functions that draw, because most commands only read a specification.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    #: One number per specimen. Array operations give the same bits as one specimen at a time.
    Numbers = NDArray[np.float64]


def is_varied(distribution: spec_pb2.Distribution) -> bool:
    """Whether draws from the distribution differ."""
    return distribution.WhichOneof("kind") not in (None, "exact")


def quantities_of(message: Message, path: str = "") -> Iterator[tuple[str, spec_pb2.Distribution]]:
    """Yields the quantities in a message with their key paths, in the order of field numbers."""
    if isinstance(message, spec_pb2.Distribution):
        yield path, message
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        where = child_path(path, key_of(field))
        if field.is_repeated:
            for number, item in enumerate(value):
                yield from quantities_of(item, f"{where}[{number}]")
        else:
            yield from quantities_of(value, where)


def quantile(distribution: spec_pb2.Distribution, probability: float) -> float:
    """The quantile of the distribution at `probability`, which is in [0, 1).

    It is clamped to the distribution's ends, because rounding could take it beyond them.
    """
    import numpy as np

    return float(quantiles(distribution, np.array([probability]))[0])


def quantiles(distribution: spec_pb2.Distribution, probabilities: Numbers) -> Numbers:
    """The quantiles of the distribution at several probabilities; see `quantile`."""
    import numpy as np

    match distribution.WhichOneof("kind"):
        case "uniform":
            low, high = distribution.uniform.low, distribution.uniform.high
            return np.clip(low + probabilities * (high - low), low, high)
        case "log_uniform":
            low, high = distribution.log_uniform.low, distribution.log_uniform.high
            width = remy_simulator.log(high) - remy_simulator.log(low)
            # Numpy's exponential gives different bits on different machines.
            growth = [remy_simulator.exp(each) for each in (probabilities * width).tolist()]
            return np.clip(low * np.array(growth), low, high)
        case "integer_uniform":
            first, last = distribution.integer_uniform.low, distribution.integer_uniform.high
            offsets = np.floor(probabilities * (last - first + 1))
            return np.asarray(np.minimum(first + offsets, last))
        case "list":
            values = np.array(distribution.list.values)
            indices = (probabilities * len(values)).astype(np.intp)
            return values[np.minimum(indices, len(values) - 1)]
        case _:
            return np.full(len(probabilities), distribution.exact)


def extent(distribution: spec_pb2.Distribution) -> tuple[float, float]:
    """The smallest and the largest value that can be drawn; (0, 0) for an empty distribution."""
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
    """Names the quantity that a draw is for, as the last element of the draw's path.

    No two quantities share a draw. The numbers never change, because a seed's draws depend on them.
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
