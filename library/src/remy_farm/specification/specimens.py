"""Fills in the simulator's messages for one specimen, a network with a value for every quantity."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from remy_farm.specification.distributions import Quantity, quantile
from remy_farm.specification.links import off_ms_of_load, rate_in_mbps
from remy_farm.specification.models import Path
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator.messages import packet_bytes

#: The distribution of a quantity that a message does not have: always 0.
_NOTHING: Final = spec_pb2.Distribution()

#: The number of quantities that `measurement_quantities` returns.
MEASUREMENT_QUANTITIES: Final = 8


def measurement_quantities(
    model: spec_pb2.MeasurementModel, value_of: Callable[..., Any], packet_ms: Any
) -> Any:
    """Draws the quantities of measurement noise, in the order that `set_measurement` expects.

    These are jitter, 99th percentile of log-normal jitter, timestamp resolution and ACK delay, in
    ms; packets per bunch; largest RTT offset in ms; probability and delay (ms) of reordering.
    `value_of(distribution, quantity)` draws a value. `packet_ms` is the bottleneck's time per
    packet.
    """
    jitter, kind = model.jitter, model.jitter.WhichOneof("kind")
    log_normal = jitter.log_normal
    size = log_normal.median_ms if kind == "log_normal" else getattr(jitter, kind or "", _NOTHING)
    unit_ms = packet_ms if kind == "exponential_mean_packets" else 1.0
    return [
        value_of(size, Quantity.JITTER) * unit_ms,
        value_of(log_normal.percentile_99_ms, Quantity.JITTER_PERCENTILE_99),
        value_of(model.timestamp_resolution_ms, Quantity.TIMESTAMP_RESOLUTION),
        value_of(model.delayed_ack_ms, Quantity.DELAYED_ACK),
        value_of(model.bunch_packets, Quantity.BUNCH),
        value_of(model.rtt_offset_maximum_ms, Quantity.RTT_OFFSET),
        value_of(model.reordering.probability, Quantity.REORDERING),
        value_of(model.reordering.delay_ms, Quantity.REORDERING_DELAY),
    ]


def set_measurement(
    message: evaluation_pb2.Measurement, model: spec_pb2.MeasurementModel, values: Iterable[float]
) -> None:
    """Fills in a Measurement with the values of `measurement_quantities`."""
    jitter_ms, percentile_99_ms, resolution_ms, message.delayed_ack_ms, bunch, *rest = values
    message.rtt_offset_maximum_ms, message.reordering_probability, message.reordering_delay_ms = (
        rest
    )
    message.timestamp_resolution_ms = resolution_ms
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
    """Returns a Measurement with the median of each quantity.

    The model's jitter must be in ms, not in multiples of the time that a packet takes.
    """
    message = evaluation_pb2.Measurement()
    set_measurement(
        message, model, measurement_quantities(model, lambda each, _: quantile(each, 0.5), 1.0)
    )
    return message


#: The number of quantities that `traffic_quantities` returns.
TRAFFIC_QUANTITIES: Final = 3


def traffic_quantities(
    traffic: spec_pb2.TrafficModel,
    value_of: Callable[..., Any],
    senders: Any,
    rate_mbps: Any,
) -> list[Any]:
    """Draws the mean length of on periods (ms or bytes), mean off time (ms), and flow interval
    (ms).

    `value_of(distribution, quantity)` draws a value. `senders` is the number of senders that
    together offer the load `traffic.load`, and `rate_mbps` is the bottleneck's rate.
    """
    on = {
        "exponential_time": traffic.exponential_time.mean_ms,
        "exponential_bytes": traffic.exponential_bytes.mean_bytes,
        "constant_bytes": traffic.constant_bytes.bytes,
    }.get(traffic.WhichOneof("on") or "", _NOTHING)
    arrival = {
        "poisson": traffic.poisson.mean_interval_ms,
        "periodic": traffic.periodic.interval_ms,
        "barrier": traffic.barrier.pause_ms,
    }.get(arrivals_of(traffic) or "", _NOTHING)
    drawn_on, drawn_arrival = value_of(on, Quantity.ON), value_of(arrival, Quantity.ARRIVAL)
    if not traffic.HasField("load"):
        return [drawn_on, value_of(traffic.mean_off_ms, Quantity.OFF), drawn_arrival]
    offered = value_of(traffic.load, Quantity.LOAD)
    return [drawn_on, off_ms_of_load(offered, senders, drawn_on, rate_mbps), drawn_arrival]


def arrivals_of(traffic: spec_pb2.TrafficModel) -> str | None:
    """The name of the field that sets when flows arrive; None if there is no such field."""
    names = (name for name in ("poisson", "periodic", "barrier") if traffic.HasField(name))
    return next(names, None)


def set_traffic(
    message: evaluation_pb2.Traffic,
    traffic: spec_pb2.TrafficModel,
    on: float,
    mean_off_ms: float,
    arrival_ms: float,
) -> None:
    """Fills in a Traffic with the values of `traffic_quantities`."""
    set_when_on(message, traffic, on)
    match arrivals_of(traffic):
        case "poisson":
            message.poisson.mean_interval_ms = arrival_ms
        case "periodic":
            message.periodic.interval_ms = arrival_ms
        case "barrier":
            message.barrier.pause_ms = arrival_ms
    message.mean_off_ms = mean_off_ms
    if traffic.HasField("first_off_factor") and traffic.first_off_factor != 1:
        message.first_off_factor = traffic.first_off_factor


def set_when_on(
    message: evaluation_pb2.Traffic, traffic: spec_pb2.TrafficModel, drawn: float = 0.0
) -> None:
    """Fills in how long senders are on.

    `drawn` is the mean or constant length; kinds of on periods without one ignore it.
    """
    match traffic.WhichOneof("on"):
        case "exponential_time":
            message.exponential_time.mean_ms = drawn
        case "exponential_bytes":
            message.exponential_bytes.mean_bytes = drawn
        case "constant_bytes":
            message.constant_bytes.bytes = drawn
        case "empirical_bytes":
            lengths = traffic.empirical_bytes
            # Quantiles in the specification replace those of the named distribution.
            if not lengths.probabilities and not lengths.bytes:
                message.empirical_bytes.name = lengths.name
            message.empirical_bytes.probabilities.extend(lengths.probabilities)
            message.empirical_bytes.bytes.extend(lengths.bytes)
            message.empirical_bytes.extra_bytes = lengths.extra_bytes
        case "always":
            message.always.SetInParent()
        case "intervals":
            message.intervals.begin_ms.extend(traffic.intervals.begin_ms)
            message.intervals.end_ms.extend(traffic.intervals.end_ms)
        case _:
            flows = traffic.flow_lengths
            for name in ("scale_bytes", "shape", "shift_bytes", "extra_bytes", "maximum_bytes"):
                setattr(message.pareto_bytes, name, getattr(flows, name))


def set_sender_group(message: evaluation_pb2.SenderGroup, group: spec_pb2.GroupModel) -> None:
    """Fills in a group's weight, objective, time of the first on period and RTT offset."""
    if group.HasField("weight") and group.weight != 1:
        message.weight = group.weight
    if group.HasField("objective"):
        message.objective.CopyFrom(group.objective)
    if group.HasField("first_on_ms"):
        message.first_on_ms = group.first_on_ms
    if group.HasField("rtt_offset_ms"):
        message.rtt_offset_ms = group.rtt_offset_ms


def set_route(message: evaluation_pb2.Route, path: Path, rtt_ms: float) -> None:
    """Fills in the links of a group's path, and splits `rtt_ms` into the two directions."""
    message.links.extend(path.links)
    message.return_links.extend(path.return_links)
    message.delay_ms = rtt_ms / 2 if path.forward_ms is None else path.forward_ms
    message.return_delay_ms = rtt_ms - message.delay_ms


def unloaded_paths(specimen: evaluation_pb2.Specimen) -> list[tuple[float, float]]:
    """Per sender: rate of the path's slowest link in Mbit/s, and RTT in ms without queueing.

    The RTT excludes service times. A link driven by a trace or a generator counts with the
    specimen's link rate.
    """
    bytes_a_packet = packet_bytes(specimen.bottleneck)
    paths = []
    for group in specimen.senders:
        route = group.route
        rates, rtt_ms = [], specimen.rtt_ms
        if group.HasField("route"):
            rtt_ms = route.delay_ms + route.return_delay_ms
        links = specimen.links
        forward = route.links[:] or range(len(links))
        for link in (links[index] for index in forward):
            driven = link.WhichOneof("driver") is not None
            rates.append(specimen.link_rate_packets_per_ms if driven else link.rate_packets_per_ms)
        for link in [links[index] for index in (*forward, *route.return_links) if links]:
            rtt_ms += link.delay_ms
        rate = min(rates, default=specimen.link_rate_packets_per_ms)
        path = rate_in_mbps(rate, bytes_a_packet), rtt_ms
        paths += [path] * group.count
    return paths
