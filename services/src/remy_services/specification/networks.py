"""Drawing specimens from a network model (section 4.3: "drawing 16 or more network specimens")."""

from enum import IntEnum
from typing import Final

import remy_simulator
from remy_farm.v1 import evaluation_pb2, spec_pb2

# A packet of 1500 bytes is 12 kbit: 1 Mbit/s is a twelfth of a packet per millisecond.
KILOBITS_PER_PACKET: Final = 12
_BELOW_ONE: Final = 1 - 2**-53


class Quantity(IntEnum):
    """What a draw is for: the last element of its path, so that no two quantities share a draw.

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


_DRAWN: Final[tuple[Quantity, ...]] = tuple(
    q for q in Quantity if q not in (Quantity.KEY, Quantity.SHUFFLE)
)


def draw_specimens(
    spec: spec_pb2.DesignSpec,
    *,
    seed: int,
    count: int,
    first_index: int = 0,
    stratified: bool = False,
) -> list[evaluation_pb2.Specimen]:
    """Specimens `first_index`, `first_index` + 1, ... of the stream that `seed` names.

    `seed` is 64 bits: a number from the user, or remy_simulator.mix(search.seed, purpose, ...).
    Without `stratified` a specimen depends on its seed and index alone. With it, each quantity
    falls once into each of `count` equally probable strata, in an order of its own (a Latin
    hypercube), which makes the mean over the specimens less noisy.
    """
    draws = _Draws(seed, first_index, count, stratified)
    return [_draw(spec, draws, index) for index in range(count)]


class _Draws:
    """Uniform variates by specimen and quantity."""

    def __init__(self, seed: int, first_index: int, count: int, stratified: bool) -> None:
        self._seed = seed
        self._first_index = first_index
        self._count = count
        self._strata = (
            {quantity: self._shuffled(quantity) for quantity in _DRAWN} if stratified else None
        )

    def key(self, index: int) -> int:
        return remy_simulator.mix(self._seed, self._first_index + index, Quantity.KEY)

    def uniform(self, index: int, quantity: Quantity) -> float:
        """In [0, 1)."""
        variate = remy_simulator.uniform(self._seed, self._first_index + index, quantity)
        if self._strata is None:
            return variate
        return min((self._strata[quantity][index] + variate) / self._count, _BELOW_ONE)

    def _shuffled(self, quantity: Quantity) -> list[int]:
        """0 ... count - 1 in random order (Fisher and Yates)."""
        order = list(range(self._count))
        for last in range(self._count - 1, 0, -1):
            variate = remy_simulator.uniform(
                self._seed, self._first_index, Quantity.SHUFFLE, quantity, last
            )
            chosen = int(variate * (last + 1))
            order[last], order[chosen] = order[chosen], order[last]
        return order


def _draw(spec: spec_pb2.DesignSpec, draws: _Draws, index: int) -> evaluation_pb2.Specimen:
    def value(distribution: spec_pb2.Distribution, quantity: Quantity) -> float:
        return quantile(distribution, draws.uniform(index, quantity))

    network = spec.network
    specimen = evaluation_pb2.Specimen(
        key=draws.key(index),
        link_rate_packets_per_ms=(
            value(network.link_rate_mbps, Quantity.LINK_RATE) / KILOBITS_PER_PACKET
        ),
        rtt_ms=value(network.rtt_ms, Quantity.RTT),
        loss_probability=value(network.loss_probability, Quantity.LOSS),
    )
    if network.buffer.HasField("packets"):
        specimen.buffer_packets = int(value(network.buffer.packets, Quantity.BUFFER))
    if network.HasField("measurement"):
        _set_measurement(specimen.measurement, network.measurement, draws, index)
    group = specimen.senders.add(count=int(value(network.senders, Quantity.SENDERS)))
    _set_traffic(group.traffic, spec.traffic, draws, index)
    return specimen


def _set_measurement(
    measurement: evaluation_pb2.Measurement,
    model: spec_pb2.MeasurementModel,
    draws: _Draws,
    index: int,
) -> None:
    size = draws.uniform(index, Quantity.JITTER)
    match model.jitter.WhichOneof("kind"):
        case "exponential_mean_ms":
            mean_ms = quantile(model.jitter.exponential_mean_ms, size)
            measurement.exponential_jitter_mean_ms = mean_ms
        case "uniform_maximum_ms":
            maximum_ms = quantile(model.jitter.uniform_maximum_ms, size)
            measurement.uniform_jitter_maximum_ms = maximum_ms
    measurement.timestamp_resolution_ms = quantile(
        model.timestamp_resolution_ms, draws.uniform(index, Quantity.TIMESTAMP_RESOLUTION)
    )


def _set_traffic(
    traffic: evaluation_pb2.Traffic, model: spec_pb2.TrafficModel, draws: _Draws, index: int
) -> None:
    on = draws.uniform(index, Quantity.ON)
    match model.WhichOneof("on"):
        case "exponential_time":
            traffic.exponential_time.mean_ms = quantile(model.exponential_time.mean_ms, on)
        case "exponential_bytes":
            traffic.exponential_bytes.mean_bytes = quantile(model.exponential_bytes.mean_bytes, on)
        case _:
            flows = model.flow_lengths
            traffic.pareto_bytes.scale_bytes = flows.scale_bytes
            traffic.pareto_bytes.shape = flows.shape
            traffic.pareto_bytes.shift_bytes = flows.shift_bytes
            traffic.pareto_bytes.extra_bytes = flows.extra_bytes
            traffic.pareto_bytes.maximum_bytes = flows.maximum_bytes
    traffic.mean_off_ms = quantile(model.mean_off_ms, draws.uniform(index, Quantity.OFF))


def quantile(distribution: spec_pb2.Distribution, probability: float) -> float:
    """The value below which `probability`, in [0, 1), of the distribution lies.

    Never outside of the distribution's ends, whatever is rounded on the way.
    """
    match distribution.WhichOneof("kind"):
        case "uniform":
            low, high = distribution.uniform.low, distribution.uniform.high
            return _clamp(low + probability * (high - low), low, high)
        case "log_uniform":
            low, high = distribution.log_uniform.low, distribution.log_uniform.high
            width = remy_simulator.log(high) - remy_simulator.log(low)
            return _clamp(low * remy_simulator.exp(probability * width), low, high)
        case "integer_uniform":
            first, last = distribution.integer_uniform.low, distribution.integer_uniform.high
            return min(first + int(probability * (last - first + 1)), last)
        case "list":
            values = distribution.list.values
            return values[min(int(probability * len(values)), len(values) - 1)]
        case _:
            return distribution.exact


def extent(distribution: spec_pb2.Distribution) -> tuple[float, float]:
    """The smallest and the largest value that can be drawn."""
    match distribution.WhichOneof("kind"):
        case "uniform":
            return distribution.uniform.low, distribution.uniform.high
        case "log_uniform":
            return distribution.log_uniform.low, distribution.log_uniform.high
        case "integer_uniform":
            return distribution.integer_uniform.low, distribution.integer_uniform.high
        case "list":
            return min(distribution.list.values), max(distribution.list.values)
        case _:
            return distribution.exact, distribution.exact


def _clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
