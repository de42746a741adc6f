"""Drawing specimens from a network model (section 4.3: "drawing 16 or more network specimens")."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

import remy_simulator
from remy_farm.v1 import evaluation_pb2, spec_pb2

# A packet of 1500 bytes is 12 kbit: 1 Mbit/s is a twelfth of a packet per millisecond.
KILOBITS_PER_PACKET: Final = 12
_BELOW_ONE: Final = 1 - 2**-53
_NOTHING: Final = spec_pb2.Distribution()

# Numpy is loaded by who draws: most commands only read what a specification says.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    #: One number a specimen. What is done to all of them at a time has the bits of one by one.
    _Numbers = NDArray[np.float64]


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
    JITTER_PERCENTILE_99 = 11
    BUNCH = 12
    DELAYED_ACK = 13


def draw_specimen_columns(
    spec: spec_pb2.DesignSpec,
    *,
    seed: int,
    count: int,
    first_index: int = 0,
    stratified: bool = False,
) -> evaluation_pb2.SpecimenColumns:
    """Specimens `first_index`, `first_index` + 1, ... of the stream that `seed` names.

    `seed` is 64 bits: a number from the user, or remy_simulator.mix(search.seed, purpose, ...).
    Without `stratified` a specimen depends on its seed and index alone. With it, each quantity
    falls once into each of `count` equally probable strata, in an order of its own (a Latin
    hypercube), which makes the mean over the specimens less noisy.
    """
    import numpy as np

    draws = _Draws(seed, first_index, count, stratified)
    network = spec.network
    rates = draws.values(network.link_rate_mbps, Quantity.LINK_RATE)
    losses = draws.values(network.loss_probability, Quantity.LOSS)
    columns = evaluation_pb2.SpecimenColumns(
        keys=draws.keys(),
        link_rates_packets_per_ms=(rates / KILOBITS_PER_PACKET).tobytes(),
        rtts_ms=draws.values(network.rtt_ms, Quantity.RTT).tobytes(),
        sender_counts=draws.values(network.senders, Quantity.SENDERS).astype(np.int64).tolist(),
    )
    if losses.any():
        columns.loss_probabilities = losses.tobytes()
    if network.buffer.HasField("packets"):
        packets = draws.values(network.buffer.packets, Quantity.BUFFER)
        columns.buffers.extend((packets.astype(np.int64) + 1).tolist())
    quantities = _quantities_of_kinds(spec, draws)
    if all((values == values[:1]).all() for values in quantities):
        # All specimens are of the first one's kind.
        quantities = [values[:1] for values in quantities]
    numbers: dict[_Kind, int] = {}
    by_specimen = zip(*(values.tolist() for values in quantities), strict=True)
    kind = [numbers.setdefault(each, len(numbers)) for each in by_specimen]
    for each in numbers:
        _set_kind(columns.kinds.add(), spec, each)
    if len(numbers) > 1:
        columns.kind.extend(kind)
    return columns


class _Draws:
    """Uniform variates by quantity, and what distributions make of them."""

    def __init__(self, seed: int, first_index: int, count: int, stratified: bool) -> None:
        self._seed = seed
        self._first = first_index
        self._count = count
        self._stratified = stratified

    def keys(self) -> bytes:
        """Of the specimens."""
        return remy_simulator.mixed(self._seed, self._first, self._count, Quantity.KEY)

    def values(self, distribution: spec_pb2.Distribution, quantity: Quantity) -> _Numbers:
        """One a specimen. What does not vary takes no draw: draws are named, so none is shifted."""
        import numpy as np

        if not is_varied(distribution):
            return np.full(self._count, quantile(distribution, 0.0))
        return quantiles(distribution, self._uniform(quantity))

    def _uniform(self, quantity: Quantity) -> _Numbers:
        """In [0, 1)."""
        import numpy as np

        variates = np.array(remy_simulator.uniforms(self._seed, self._first, self._count, quantity))
        if not self._stratified:
            return variates
        order = remy_simulator.shuffled(
            self._count, self._seed, self._first, Quantity.SHUFFLE, quantity
        )
        spread: _Numbers = np.minimum((np.array(order) + variates) / self._count, _BELOW_ONE)
        return spread


#: What specimens of a kind have in common beside the model: mean time or bytes on (0 where the
#: model has the lengths of flows), mean time off, and what `_noise` gives.
_Kind = tuple[float, ...]


def _quantities_of_kinds(spec: spec_pb2.DesignSpec, draws: _Draws) -> list[_Numbers]:
    """Those of a kind, each with one number a specimen."""
    traffic, network = spec.traffic, spec.network
    packet_ms = KILOBITS_PER_PACKET / draws.values(network.link_rate_mbps, Quantity.LINK_RATE)
    on = {
        "exponential_time": traffic.exponential_time.mean_ms,
        "exponential_bytes": traffic.exponential_bytes.mean_bytes,
    }.get(traffic.WhichOneof("on") or "", _NOTHING)
    return [
        draws.values(on, Quantity.ON),
        draws.values(traffic.mean_off_ms, Quantity.OFF),
        *_noise(network.measurement, draws.values, packet_ms),
    ]


def _noise(model: spec_pb2.MeasurementModel, values: Callable[..., Any], packet_ms: Any) -> Any:
    """Jitter, a log-normal one's 99th percentile, resolution and delay of ACKs, ms; bunches."""
    jitter, kind = model.jitter, model.jitter.WhichOneof("kind")
    log_normal = jitter.log_normal
    size = log_normal.median_ms if kind == "log_normal" else getattr(jitter, kind or "", _NOTHING)
    unit_ms = packet_ms if kind == "exponential_mean_packets" else 1.0
    return [
        values(size, Quantity.JITTER) * unit_ms,
        values(log_normal.percentile_99_ms, Quantity.JITTER_PERCENTILE_99),
        values(model.timestamp_resolution_ms, Quantity.TIMESTAMP_RESOLUTION),
        values(model.delayed_ack_ms, Quantity.DELAYED_ACK),
        values(model.bunch_packets, Quantity.BUNCH),
    ]


def _set_measurement(
    message: evaluation_pb2.Measurement, model: spec_pb2.MeasurementModel, values: Iterable[float]
) -> None:
    jitter_ms, percentile_99_ms, resolution_ms, message.delayed_ack_ms, bunch = values
    message.timestamp_resolution_ms = resolution_ms
    # Bunches of one are none.
    message.bunch_packets = int(bunch) if bunch > 1 else 0
    match model.jitter.WhichOneof("kind"):
        case "exponential_mean_ms" | "exponential_mean_packets":
            message.exponential_jitter_mean_ms = jitter_ms
        case "uniform_maximum_ms":
            message.uniform_jitter_maximum_ms = jitter_ms
        case "log_normal":
            message.log_normal_jitter.median_ms = jitter_ms
            message.log_normal_jitter.percentile_99_ms = percentile_99_ms


def typical_measurement(model: spec_pb2.MeasurementModel) -> evaluation_pb2.Measurement:
    """The median of each quantity of a model that has none in packet times."""
    message = evaluation_pb2.Measurement()
    _set_measurement(message, model, _noise(model, lambda each, _: quantile(each, 0.5), 1.0))
    return message


def _set_kind(message: evaluation_pb2.SpecimenKind, spec: spec_pb2.DesignSpec, kind: _Kind) -> None:
    on, mean_off_ms, *measured = kind
    if spec.network.HasField("measurement"):
        message.measurement.SetInParent()
        _set_measurement(message.measurement, spec.network.measurement, measured)
    traffic = message.senders.add().traffic
    match spec.traffic.WhichOneof("on"):
        case "exponential_time":
            traffic.exponential_time.mean_ms = on
        case "exponential_bytes":
            traffic.exponential_bytes.mean_bytes = on
        case _:
            flows = spec.traffic.flow_lengths
            for name in ("scale_bytes", "shape", "shift_bytes", "extra_bytes", "maximum_bytes"):
                setattr(traffic.pareto_bytes, name, getattr(flows, name))
    traffic.mean_off_ms = mean_off_ms


def is_varied(distribution: spec_pb2.Distribution) -> bool:
    """Whether draws from the distribution differ."""
    return distribution.WhichOneof("kind") not in (None, "exact")


def quantile(distribution: spec_pb2.Distribution, probability: float) -> float:
    """The value below which `probability`, in [0, 1), of the distribution lies.

    Never outside of the distribution's ends, whatever is rounded on the way.
    """
    import numpy as np

    return float(quantiles(distribution, np.array([probability]))[0])


def quantiles(distribution: spec_pb2.Distribution, probabilities: _Numbers) -> _Numbers:
    """The same for several probabilities."""
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
