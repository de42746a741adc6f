"""Reads network files, each of which describes one network with one value for every quantity.

A file has the keys of a specification's network (`NetworkModel` in proto/remy_farm/v1/spec.proto)
and the same reader and checks; docs/reference/networks.md describes them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from remy_farm.specification.checking import check, load_tree, unrelated
from remy_farm.specification.distributions import is_varied, quantities_of
from remy_farm.specification.links import (
    MAX_BUFFER_PACKETS,
    buffer_packets,
    buffer_size,
    link_message,
    link_names,
    link_rate_packets_per_ms,
    parse_choice,
    rate_in_mbps,
    with_buffer_in_packets,
)
from remy_farm.specification.models import paths_of
from remy_farm.specification.reading import Tree, fill
from remy_farm.specification.referenced_files import resolve_trace, trace_of
from remy_farm.specification.schema import (
    SpecError,
    Violation,
    show,
)
from remy_farm.specification.senders import REMYCC, SenderSpec, bottleneck
from remy_farm.specification.specimens import (
    measurement_quantities,
    set_measurement,
    set_route,
    set_sender_group,
    set_traffic,
    traffic_quantities,
    unloaded_paths,
)
from remy_farm.specification.writing import vary
from remy_proto.completion import complete
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator.messages import native_link
from remy_simulator.registry import Registry
from remy_simulator.traces import Traces

#: Keys that describe the only link of a network without `links`.
_ONE_LINK: Final = ("rate_mbps", "buffer", "loss_probability", "queue")
_NAME_OF_ONE_LINK: Final = "link"
#: The traffic of a file without `traffic`.
_DEFAULT_TRAFFIC: Final[Tree] = {"always": {}}


@dataclass(frozen=True)
class Topology:
    """A network in the simulator's terms, with the names of its senders and links."""

    specimen: evaluation_pb2.Specimen
    """The network. The caller has to read the RemyCCs' files and to set the groups' `table`."""
    sender_specs: list[SenderSpec]
    """The senders of each group."""
    links: list[str]
    """The name of each link."""
    traces: list[evaluation_pb2.Trace] = field(default_factory=list)


def read_topology(path: str | os.PathLike[str]) -> Topology:
    """Reads the network in a YAML or JSON file. Raises SpecError or FileError."""
    source = os.fspath(path)
    return topology_of(load_tree(path), Path(source).parent, source)


def topology_of(tree: Tree, folder: Path, source: str, *, plain: bool = False) -> Topology:
    """Builds the network that a file's keys describe; paths of traces are relative to `folder`.

    With `plain`, a network without `links` and routes becomes a plain dumbbell, for which the
    simulator returns no counts per link. With `ack_bytes` it always becomes one.
    Raises SpecError, which names everything that is wrong.
    """
    network = network_of(tree, folder, source)
    default = parse_choice(Registry.TRANSPORT, network.transport) if network.transport else None
    sender_specs = [_sender_spec(group, default, folder) for group in network.sender_groups]
    has_links = isinstance(tree, dict) and "links" in tree
    has_routes = any(group.HasField("route") for group in network.sender_groups)
    if not has_links and not has_routes and (plain or network.ack_bytes):
        return Topology(_dumbbell_specimen(network, sender_specs), sender_specs, [])
    hashes = [link.trace.sha256 for link in network.links if link.HasField("trace")]
    link_traces = (trace_of(bytes.fromhex(each)) for each in dict.fromkeys(hashes))
    traces = [each.message() for each in link_traces if each is not None]
    specimen = _specimen_with_links(network, sender_specs, traces)
    return Topology(specimen, sender_specs, link_names(network.links), traces)


def vary_network(tree: Tree, path: str, value: Tree, *, source: str = "the network") -> Tree:
    """The tree of a network with `value` at a path such as "buffer.bdp"; see `vary`."""
    return vary(tree, path, value, source=source, message=spec_pb2.NetworkModel)


def network_of(tree: Tree, folder: Path, source: str) -> spec_pb2.NetworkModel:
    """Reads and completes the network that a tree describes, and describes its link in `links`.

    Every quantity has one value. Raises SpecError.
    """
    if not isinstance(tree, dict):
        raise SpecError(source, [Violation("", f"is {show(tree)}, but must be a network")])
    given = {"traffic": _DEFAULT_TRAFFIC, **tree}
    has_links = "links" in tree
    missing: list[Violation] = []
    if not has_links:
        # The network's own keys describe its one link.
        if "rate_mbps" not in tree:
            missing.append(Violation("rate_mbps", "is missing, and there are no links"))
            given["rate_mbps"] = 1
        link: dict[str, Tree] = {key: given.pop(key) for key in _ONE_LINK if key in given}
        given["links"] = [{"name": _NAME_OF_ONE_LINK, **link}]
    network = spec_pb2.NetworkModel()
    found = [*missing, *fill(network, given)]
    complete(network)
    for number, link_model in enumerate(network.links):
        if link_model.HasField("trace") and not found:
            found += resolve_trace(link_model.trace, folder, f"links[{number}].trace")
    found += unrelated(_specification_only(network), found)
    found += unrelated(check(network), found)
    if found:
        raise SpecError(source, [_with_path_in_file(each, has_links) for each in found])
    return network


def _with_path_in_file(violation: Violation, has_links: bool) -> Violation:
    """Gives a violation its path in the file: without `links`, the network has the link's keys."""
    path = violation.path
    if not has_links:
        path = path.removeprefix("links[0]").removeprefix(".")
    return replace(violation, path=path or "the network")


def _specification_only(network: spec_pb2.NetworkModel) -> Iterator[Violation]:
    """Violations for what only a specification may have: distributions, and designed tables."""
    for path, quantity in quantities_of(network):
        if is_varied(quantity):
            yield Violation(path, "has a distribution, but must have one value for everything")
    if network.HasField("senders"):
        yield Violation("senders", "is a number, but must be a list of senders with what they run")
    elif not network.sender_groups:
        yield Violation("senders", "is missing")
    for number, group in enumerate(network.sender_groups):
        where = f"senders[{number}]"
        if group.HasField("design"):
            yield Violation(
                f"{where}.design",
                f"is {show(group.design)}, but nothing is designed here; name a protocol or table",
            )
        if group.HasField("table") and not group.table.path:
            yield Violation(f"{where}.table", "must be the name of a file")
        if group.count.HasField("exact") and group.count.exact < 1:
            yield Violation(
                f"{where}.count", f"is {show(group.count.exact)}, but must be 1 or more"
            )


def _sender_spec(
    group: spec_pb2.GroupModel, default_transport: evaluation_pb2.Choice | None, folder: Path
) -> SenderSpec:
    """The SenderSpec of a group.

    The path of a table is relative to `folder`. If there is no such file, the path stays as it is,
    because it may be the name of a table that the caller has.
    """
    path = group.table.path if group.HasField("table") else None
    runs = group.protocol if path is None else f"{REMYCC}{path}"
    spec = SenderSpec(
        name=group.name or (f"{runs},transport={group.transport}" if group.transport else runs),
        count=int(group.count.exact),
        remycc=str(folder / path) if path and (folder / path).is_file() else path,
        protocol=parse_choice(Registry.PROTOCOL, group.protocol) if path is None else None,
        transport=parse_choice(Registry.TRANSPORT, group.transport) if group.transport else None,
        rtt_ms=group.rtt_ms.exact if group.HasField("rtt_ms") else None,
    )
    return replace(spec, transport=spec.transport_or(default_transport))


def _specimen_with_links(
    network: spec_pb2.NetworkModel,
    sender_specs: list[SenderSpec],
    traces: list[evaluation_pb2.Trace],
) -> evaluation_pb2.Specimen:
    """The simulator's specimen of a network with links, and with senders that have routes."""
    known = Traces(traces)
    specimen = evaluation_pb2.Specimen(rtt_ms=network.rtt_ms.exact)
    specimen.bottleneck.packet_bytes = network.packet_bytes
    specimen.bottleneck.ack_bytes = network.ack_bytes
    rate = partial(link_rate_packets_per_ms, bytes_a_packet=network.packet_bytes)
    rates = []
    for link in network.links:
        native = native_link(link_message(with_buffer_in_packets(link), rate), known)
        rates.append(native.mean_rate_packets_per_ms(network.packet_bytes))
        in_packets = with_buffer_in_packets(link)
        if in_packets is not link:
            packets = _buffer_packets(network, link.buffer, rates[-1])
            in_packets.buffer.packets.exact = packets or 0
        specimen.links.add().CopyFrom(link_message(in_packets, rate))
    specimen.link_rate_packets_per_ms = min(rates, default=1.0)
    _add_senders(specimen, network, sender_specs)
    paths = paths_of(network)
    for group, senders, path in zip(network.sender_groups, specimen.senders, paths, strict=True):
        set_route(senders.route, path, path.rtt.exact)
        if not group.route.links:
            senders.route.ClearField("links")
    if not specimen.rtt_ms:
        specimen.rtt_ms = min(rtt_ms for _, rtt_ms in unloaded_paths(specimen))
    return specimen


def _dumbbell_specimen(
    network: spec_pb2.NetworkModel, sender_specs: list[SenderSpec]
) -> evaluation_pb2.Specimen:
    """The simulator's specimen of a dumbbell, whose one link all senders share."""
    (link,) = network.links
    rate = link_rate_packets_per_ms(link.rate_mbps.exact, network.packet_bytes)
    specimen = evaluation_pb2.Specimen(
        link_rate_packets_per_ms=rate,
        rtt_ms=network.rtt_ms.exact,
        buffer_packets=_buffer_packets(network, link.buffer, rate),
        loss_probability=link.loss_probability.exact,
        bottleneck=bottleneck(
            parse_choice(Registry.QUEUE, link.queue) if link.queue else None,
            network.packet_bytes,
            network.ack_bytes,
        ),
    )
    _add_senders(specimen, network, sender_specs)
    return specimen


def _buffer_packets(
    network: spec_pb2.NetworkModel, buffer: spec_pb2.Buffer, rate: float
) -> int | None:
    """Packets that the queue of a link holds; None if it is infinite."""
    size = buffer_size(buffer)
    if size is None:
        return None
    packets = buffer_packets(
        buffer,
        size.exact,
        rate_packets_per_ms=rate,
        rtt_ms=max(path.rtt_ms(lambda each: each.exact) for path in paths_of(network)),
        packet_bytes=network.packet_bytes,
    )
    return min(int(packets), MAX_BUFFER_PACKETS)


def _add_senders(
    specimen: evaluation_pb2.Specimen,
    network: spec_pb2.NetworkModel,
    sender_specs: list[SenderSpec],
) -> None:
    """Adds the senders and their traffic to a specimen, and the noise of their measurements."""
    rate = specimen.link_rate_packets_per_ms
    rate_mbps = rate_in_mbps(rate, network.packet_bytes)
    if network.HasField("measurement"):
        drawn = measurement_quantities(network.measurement, _exactly, 1 / rate)
        specimen.measurement.SetInParent()
        set_measurement(specimen.measurement, network.measurement, drawn)
    shared = sum(each.count.exact for each in network.sender_groups if not each.HasField("traffic"))
    for group, spec in zip(network.sender_groups, sender_specs, strict=True):
        senders = specimen.senders.add(count=spec.count)
        senders.MergeFrom(spec.sender_group(None))
        has_own = group.HasField("traffic")
        traffic = group.traffic if has_own else network.traffic
        count = group.count.exact if has_own else shared
        quantities = traffic_quantities(traffic, _exactly, count, rate_mbps)
        set_traffic(senders.traffic, traffic, *quantities)
        set_sender_group(senders, group)


def _exactly(quantity: spec_pb2.Distribution, _: int) -> float:
    return quantity.exact
