"""The network models of a specification: their senders, paths, and the tables that senders run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final

from google.protobuf import json_format

from remy_farm.specification.distributions import extent, quantile
from remy_farm.specification.links import (
    DEFAULT_PACKET_BYTES,
    as_dumbbell,
    buffer_packets,
    buffer_size,
    kilobits_per_packet,
    link_indices,
    mean_rate_mbps,
    off_ms_of_load,
    parse_choice,
    with_values_of,
)
from remy_farm.specification.senders import DATAGRAM, TCP
from remy_proto.v1 import evaluation_pb2, rule_table_pb2, spec_pb2
from remy_simulator.registry import Registry

#: The name of the designed table in a specification that does not name one.
DEFAULT_TABLE: Final = "remycc"

_DEFAULT_TRANSPORTS: Final = {"design": DATAGRAM, "table": DATAGRAM, "protocol": TCP}
_MEDIAN: Final = 0.5


@dataclass(frozen=True)
class Model:
    """A network model with its weight, which is relative to the weights of the other models."""

    weight: float
    network: spec_pb2.NetworkModel

    def traffic_of(self, group: spec_pb2.GroupModel) -> spec_pb2.TrafficModel:
        """The traffic of a group: its own, or the network's."""
        return group.traffic if group.HasField("traffic") else self.network.traffic

    @cached_property
    def groups(self) -> Sequence[spec_pb2.GroupModel]:
        """The sender groups; see `groups_of`."""
        return groups_of(self.network)


def groups_of(network: spec_pb2.NetworkModel) -> list[spec_pb2.GroupModel]:
    """The sender groups of a network, with the network's transport filled in.

    A network that only gives a number of senders has one group, which runs the designed table.
    """
    groups = list(network.sender_groups)
    if not groups:
        groups = [spec_pb2.GroupModel(design=DEFAULT_TABLE, count=network.senders)]
    if not network.transport:
        return groups
    return [_with_default_transport(group, network.transport) for group in groups]


def _with_default_transport(group: spec_pb2.GroupModel, default: str) -> spec_pb2.GroupModel:
    """The group with `default` as its transport, unless it has one or `default` cannot carry it."""
    cannot_carry = group.HasField("protocol") and default.partition(",")[0] != TCP
    if group.transport or cannot_carry:
        return group
    copy = spec_pb2.GroupModel()
    copy.CopyFrom(group)
    copy.transport = default
    return copy


def models(spec: spec_pb2.DesignSpec) -> list[Model]:
    """The models that networks are drawn from, in the specification's order."""
    if not spec.models:
        return [Model(1.0, _without_one_link(spec.network))]
    return [Model(each.weight, _without_one_link(each.network)) for each in spec.models]


def _without_one_link(network: spec_pb2.NetworkModel) -> spec_pb2.NetworkModel:
    return as_dumbbell(network) if network.links else network


def designed_tables(spec: spec_pb2.DesignSpec) -> list[str]:
    """The names of the tables that the specification designs, in order of first mention."""
    groups = chain.from_iterable(model.groups for model in models(spec))
    return list(dict.fromkeys(group.design for group in groups if group.HasField("design")))


def fixed_tables(spec: spec_pb2.DesignSpec) -> list[rule_table_pb2.RuleTable]:
    """The fixed tables that groups run. In requests they follow the designed tables."""
    return [json_format.Parse(text, rule_table_pb2.RuleTable()) for text in fixed_table_texts(spec)]


def fixed_table_texts(spec: spec_pb2.DesignSpec) -> list[str]:
    """The distinct fixed tables as JSON text, in order of first mention."""
    groups = chain.from_iterable(model.groups for model in models(spec))
    return list(dict.fromkeys(group.table.json for group in groups if group.HasField("table")))


def transport_of(group: spec_pb2.GroupModel) -> evaluation_pb2.Choice | None:
    """The transport of a group's senders; None if it is the default one.

    Raises ValueError if it is unknown.
    """
    if not group.transport:
        return None
    transport = parse_choice(Registry.TRANSPORT, group.transport)
    default = _DEFAULT_TRANSPORTS.get(group.WhichOneof("controller") or "")
    return None if transport == evaluation_pb2.Choice(name=default) else transport


def outline(spec: spec_pb2.DesignSpec) -> Model:
    """One model that summarizes all models, for initial guesses, bounds and descriptions.

    It has a single bottleneck and a number of senders. A quantity in which the models differ
    becomes a list of the ends and the median of each model.
    """
    every = models(spec)
    first = every[0]
    if len(every) == 1 and not first.network.sender_groups and not first.network.links:
        return first
    network = spec_pb2.NetworkModel()
    network.CopyFrom(first.network)
    network.ClearField("sender_groups")
    network.ClearField("links")
    if first.network.links:
        network.loss_probability.CopyFrom(first.network.links[0].loss_probability)
        network.buffer.infinite.SetInParent()
    outlines = [_single_bottleneck(each.network) for each in every]
    for name in ("rate_mbps", "rtt_ms", "loss_probability"):
        network.ClearField(name)
        getattr(network, name).CopyFrom(_mixture([getattr(each, name) for each in outlines]))
    network.senders.list.values.extend(
        chain.from_iterable(map(sorted, zip(*map(_sender_counts, every), strict=True)))
    )
    designed = [group for group in first.groups if group.HasField("design")]
    network.traffic.CopyFrom(first.traffic_of((designed or first.groups)[0]))
    return Model(1.0, network)


def _single_bottleneck(network: spec_pb2.NetworkModel) -> spec_pb2.NetworkModel:
    """Summarizes a network with several paths as one bottleneck: the rate of the slowest link, and
    the ends and the median of the RTTs."""
    end_median_end: list[Callable[[spec_pb2.Distribution], float]] = [
        lambda each: extent(each)[0],
        lambda each: quantile(each, _MEDIAN),
        lambda each: extent(each)[1],
    ]
    rtts = [group.rtt_ms for group in network.sender_groups if group.HasField("rtt_ms")]
    if not network.links and not rtts:
        return network
    summary = spec_pb2.NetworkModel()
    summary.rate_mbps.CopyFrom(network.rate_mbps)
    summary.loss_probability.CopyFrom(network.loss_probability)
    shortest, medians, longest = (
        [path.rtt_ms(value_of) for path in paths_of(network)] for value_of in end_median_end
    )
    summary.rtt_ms.list.values.extend(
        [min(shortest), sorted(medians)[len(medians) // 2], max(longest)]
    )
    if network.links:
        rates = [
            [mean_rate_mbps(with_values_of(link, value_of)) for link in network.links]
            for value_of in end_median_end
        ]
        summary.rate_mbps.list.values.extend(sorted(map(min, rates)))
        summary.loss_probability.CopyFrom(network.links[0].loss_probability)
    return summary


def mean_off_ms(model: Model, value_of: Callable[[spec_pb2.Distribution], float]) -> float:
    """The mean off time of a model's senders, in ms; `value_of` picks a value of each quantity."""
    network, traffic = model.network, model.network.traffic
    if not traffic.HasField("load"):
        return value_of(traffic.mean_off_ms)
    off_ms: float = off_ms_of_load(
        value_of(traffic.load),
        value_of(network.senders),
        value_of(traffic.exponential_bytes.mean_bytes),
        value_of(network.rate_mbps),
    )
    return off_ms


def buffer_capacity_packets(
    model: Model, value_of: Callable[[spec_pb2.Distribution], float]
) -> float | None:
    """The packets that a model's buffer holds, where `value_of` picks a value of each quantity.

    Returns None if the buffer is infinite.
    """
    network = model.network
    size = buffer_size(network.buffer)
    if size is None:
        return None
    packets: float = buffer_packets(
        network.buffer,
        value_of(size),
        rate_packets_per_ms=value_of(network.rate_mbps) / kilobits_per_packet(network),
        rtt_ms=value_of(network.rtt_ms),
        packet_bytes=network.packet_bytes or DEFAULT_PACKET_BYTES,
    )
    return packets


@dataclass(frozen=True, slots=True)
class Path:
    """The path of a group's packets to the receiver, and of the ACKs back."""

    rtt: spec_pb2.Distribution
    """Constant delay of both directions, in addition to the delays of links."""
    links: list[int]
    return_links: list[int]
    delays: list[spec_pb2.Distribution]
    """The delays of the links that packets and ACKs cross."""
    forward_ms: float | None = None
    """The part of `rtt` before the receiver; None means half of it."""

    def rtt_ms(self, value_of: Callable[[spec_pb2.Distribution], float]) -> float:
        """The RTT without queueing and service times; `value_of` picks a value of each delay."""
        return value_of(self.rtt) + sum(map(value_of, self.delays))


def paths_of(network: spec_pb2.NetworkModel) -> list[Path]:
    """The path of each sender group, or one path if the network has no groups.

    Raises ValueError for a route over a link that does not exist.
    """
    paths = []
    for group in network.sender_groups or [spec_pb2.GroupModel()]:
        rtt = group.rtt_ms if group.HasField("rtt_ms") else network.rtt_ms
        if not network.links:
            paths.append(Path(rtt, [], [], []))
            continue
        forward_ms = None
        if group.route.HasField("delay_ms") or group.route.HasField("return_delay_ms"):
            forward_ms = group.route.delay_ms
            rtt = spec_pb2.Distribution(exact=forward_ms + group.route.return_delay_ms)
        forward = link_indices(group.route.links, network.links) or range(len(network.links))
        back = link_indices(group.route.return_links, network.links)
        delays = [network.links[index].delay_ms for index in (*forward, *back)]
        paths.append(Path(rtt, list(forward), back, delays, forward_ms))
    return paths


def _sender_counts(model: Model) -> tuple[float, float, float]:
    """The smallest, median and largest number of senders."""
    counts = [group.count for group in model.groups]
    ends = [extent(count) for count in counts]
    return (
        max(sum(low for low, _ in ends), 1.0),
        max(sum(quantile(count, _MEDIAN) for count in counts), 1.0),
        sum(high for _, high in ends),
    )


def _mixture(distributions: Sequence[spec_pb2.Distribution]) -> spec_pb2.Distribution:
    if all(each == distributions[0] for each in distributions):
        return distributions[0]
    values = chain.from_iterable((*extent(each), quantile(each, _MEDIAN)) for each in distributions)
    mixed = spec_pb2.Distribution()
    mixed.list.values.extend(sorted(values))
    return mixed
