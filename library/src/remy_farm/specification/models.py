"""Models of networks: what a specification says of links, senders and their paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final

from google.protobuf import json_format

from remy_farm.specification.distributions import extent, quantile
from remy_farm.specification.links import (
    USUAL_PACKET_BYTES,
    as_dumbbell,
    buffer_packets,
    buffer_size,
    chosen,
    kilobits_per_packet,
    mean_rate_mbps,
    numbers_of,
    off_ms_of_load,
    with_each,
)
from remy_farm.specification.senders import TCP
from remy_proto.v1 import evaluation_pb2, rule_table_pb2, spec_pb2
from remy_simulator.registry import Registry

#: The name of the table that a specification without groups designs.
USUAL_TABLE: Final = "remycc"

_USUAL_TRANSPORTS: Final = {"design": "datagram", "table": "datagram", "protocol": TCP}
_MEDIAN: Final = 0.5


@dataclass(frozen=True)
class Model:
    """Networks of one kind, and how many there are of them in proportion to others."""

    weight: float
    network: spec_pb2.NetworkModel

    def traffic_of(self, group: spec_pb2.GroupModel) -> spec_pb2.TrafficModel:
        """The load that senders of a group offer."""
        return group.traffic if group.HasField("traffic") else self.network.traffic

    @cached_property
    def groups(self) -> Sequence[spec_pb2.GroupModel]:
        """Its senders; those of a model without groups are one."""
        return groups_of(self.network)


def groups_of(network: spec_pb2.NetworkModel) -> list[spec_pb2.GroupModel]:
    """The senders of a network, each with the transport that carries it where one is named."""
    groups = list(network.sender_groups)
    if not groups:
        groups = [spec_pb2.GroupModel(design=USUAL_TABLE, count=network.senders)]
    if not network.transport:
        return groups
    return [_carried(group, network.transport) for group in groups]


def _carried(group: spec_pb2.GroupModel, usual: str) -> spec_pb2.GroupModel:
    """The group on its own transport, or on the network's where that carries what it runs."""
    of_tables_only = group.HasField("protocol") and usual.partition(",")[0] != TCP
    if group.transport or of_tables_only:
        return group
    carried = spec_pb2.GroupModel()
    carried.CopyFrom(group)
    carried.transport = usual
    return carried


def models(spec: spec_pb2.DesignSpec) -> list[Model]:
    """The models that networks are drawn from, in the specification's order."""
    if not spec.models:
        return [Model(1.0, _without_one_link(spec.network))]
    return [Model(each.weight, _without_one_link(each.network)) for each in spec.models]


def _without_one_link(network: spec_pb2.NetworkModel) -> spec_pb2.NetworkModel:
    return as_dumbbell(network) if network.links else network


def designs(spec: spec_pb2.DesignSpec) -> list[str]:
    """The names of the tables that are designed, in the order of their first mention."""
    groups = chain.from_iterable(model.groups for model in models(spec))
    return list(dict.fromkeys(group.design for group in groups if group.HasField("design")))


def given_tables(spec: spec_pb2.DesignSpec) -> list[rule_table_pb2.RuleTable]:
    """The tables that groups run and nobody designs: those of requests behind the designed ones."""
    return [json_format.Parse(text, rule_table_pb2.RuleTable()) for text in given_texts(spec)]


def given_texts(spec: spec_pb2.DesignSpec) -> list[str]:
    """The given tables as JSON text, each once, in the order of their first mention."""
    groups = chain.from_iterable(model.groups for model in models(spec))
    return list(dict.fromkeys(group.table.json for group in groups if group.HasField("table")))


def transport_of(group: spec_pb2.GroupModel) -> evaluation_pb2.Choice | None:
    """The transport of a group's senders; None where it is the usual one. Raises ValueError."""
    if not group.transport:
        return None
    transport = chosen(Registry.TRANSPORT, group.transport)
    usual = _USUAL_TRANSPORTS.get(group.WhichOneof("controller") or "")
    return None if transport == evaluation_pb2.Choice(name=usual) else transport


def outline(spec: spec_pb2.DesignSpec) -> Model:
    """Sums all models up in one that has a number of senders: for guesses, bounds and descriptions.

    Where models differ in a quantity it has the ends and the median of each with equal probability.
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
    outlines = [_paths(each.network) for each in every]
    for name in ("rate_mbps", "rtt_ms", "loss_probability"):
        network.ClearField(name)
        getattr(network, name).CopyFrom(_any_of([getattr(each, name) for each in outlines]))
    network.senders.list.values.extend(
        chain.from_iterable(map(sorted, zip(*map(_senders, every), strict=True)))
    )
    designed = [group for group in first.groups if group.HasField("design")]
    network.traffic.CopyFrom(first.traffic_of((designed or first.groups)[0]))
    return Model(1.0, network)


def _paths(network: spec_pb2.NetworkModel) -> spec_pb2.NetworkModel:
    """A network whose paths differ as one bottleneck: the slowest link, and the ends and the median
    of what RTTs may be."""
    takes: list[Callable[[spec_pb2.Distribution], float]] = [
        lambda each: extent(each)[0],
        lambda each: quantile(each, _MEDIAN),
        lambda each: extent(each)[1],
    ]
    rtts = [group.rtt_ms for group in network.sender_groups if group.HasField("rtt_ms")]
    if not network.links and not rtts:
        return network
    found = spec_pb2.NetworkModel()
    found.rate_mbps.CopyFrom(network.rate_mbps)
    found.loss_probability.CopyFrom(network.loss_probability)
    shortest, usual, longest = ([path.rtt_ms(take) for path in paths_of(network)] for take in takes)
    ends = [min(shortest), sorted(usual)[len(usual) // 2], max(longest)]
    found.rtt_ms.list.values.extend(ends)
    if network.links:
        each = [[mean_rate_mbps(with_each(link, take)) for link in network.links] for take in takes]
        found.rate_mbps.list.values.extend(sorted(map(min, each)))
        found.loss_probability.CopyFrom(network.links[0].loss_probability)
    return found


def mean_off_ms(model: Model, take: Callable[[spec_pb2.Distribution], float]) -> float:
    """The mean off time of a model's senders where each quantity has what `take` makes of it."""
    network, traffic = model.network, model.network.traffic
    if not traffic.HasField("load"):
        return take(traffic.mean_off_ms)
    found: float = off_ms_of_load(
        take(traffic.load),
        take(network.senders),
        take(traffic.exponential_bytes.mean_bytes),
        take(network.rate_mbps),
    )
    return found


def most_waiting_packets(
    model: Model, take: Callable[[spec_pb2.Distribution], float]
) -> float | None:
    """The packets that a model's buffer holds where each quantity has what `take` makes of it; None
    where it is infinite."""
    network = model.network
    size = buffer_size(network.buffer)
    if size is None:
        return None
    packets: float = buffer_packets(
        network.buffer,
        take(size),
        rate_packets_per_ms=take(network.rate_mbps) / kilobits_per_packet(network),
        rtt_ms=take(network.rtt_ms),
        packet_bytes=network.packet_bytes or USUAL_PACKET_BYTES,
    )
    return packets


@dataclass(frozen=True, slots=True)
class Path:
    """The way of a group's packets and of the ACKs for them."""

    rtt: spec_pb2.Distribution
    """Without that of links."""
    links: list[int]
    return_links: list[int]
    delays: list[spec_pb2.Distribution]
    """The delays of the links that packets and ACKs cross."""
    there_ms: float | None = None
    """The part of the RTT that lies on the way there; half of it where the route does not say."""

    def rtt_ms(self, take: Callable[[spec_pb2.Distribution], float]) -> float:
        """Without queueing and service."""
        return take(self.rtt) + sum(map(take, self.delays))


def paths_of(network: spec_pb2.NetworkModel) -> list[Path]:
    """The path of each group; one path where there are no groups. Raises ValueError for a route
    over a link that is not there."""
    paths = []
    for group in network.sender_groups or [spec_pb2.GroupModel()]:
        rtt = group.rtt_ms if group.HasField("rtt_ms") else network.rtt_ms
        if not network.links:
            paths.append(Path(rtt, [], [], []))
            continue
        there_ms = None
        if group.route.HasField("delay_ms") or group.route.HasField("return_delay_ms"):
            there_ms = group.route.delay_ms
            rtt = spec_pb2.Distribution(exact=there_ms + group.route.return_delay_ms)
        there = numbers_of(group.route.links, network.links) or range(len(network.links))
        back = numbers_of(group.route.return_links, network.links)
        delays = [network.links[number].delay_ms for number in (*there, *back)]
        paths.append(Path(rtt, list(there), back, delays, there_ms))
    return paths


def _senders(model: Model) -> tuple[float, float, float]:
    """The fewest, the median number and the most."""
    counts = [group.count for group in model.groups]
    ends = [extent(count) for count in counts]
    return (
        max(sum(low for low, _ in ends), 1.0),
        max(sum(quantile(count, _MEDIAN) for count in counts), 1.0),
        sum(high for _, high in ends),
    )


def _any_of(distributions: Sequence[spec_pb2.Distribution]) -> spec_pb2.Distribution:
    if all(each == distributions[0] for each in distributions):
        return distributions[0]
    values = chain.from_iterable((*extent(each), quantile(each, _MEDIAN)) for each in distributions)
    mixed = spec_pb2.Distribution()
    mixed.list.values.extend(sorted(values))
    return mixed
