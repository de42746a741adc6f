"""Network files: one network with a value for everything, read, checked and told the simulator.

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

from google.protobuf.message import Message

from remy_farm.specification.checking import check, load_tree, unrelated
from remy_farm.specification.distributions import is_varied
from remy_farm.specification.enclosures import enclose_trace, recording_of
from remy_farm.specification.links import (
    MOST_BUFFER_PACKETS,
    buffer_packets,
    buffer_size,
    chosen,
    in_packets,
    link_message,
    link_rate_packets_per_ms,
    names_of,
    rate_in_mbps,
)
from remy_farm.specification.models import paths_of
from remy_farm.specification.reading import Tree, fill, key_of
from remy_farm.specification.schema import (
    SpecError,
    Violation,
    child_path,
    fields_of,
    is_submessage,
    show,
)
from remy_farm.specification.senders import REMYCC, Words, bottleneck
from remy_farm.specification.specimens import (
    drawn_of_load,
    noise,
    set_group,
    set_measurement,
    set_route,
    set_traffic,
    unloaded_paths,
)
from remy_farm.specification.writing import vary
from remy_proto.completion import complete
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator.messages import native_link
from remy_simulator.registry import Registry
from remy_simulator.traces import Traces

#: Keys of a network's one link, where it has no `links`.
_ONE_LINK: Final = ("rate_mbps", "buffer", "loss_probability", "queue")
_NAME_OF_ONE_LINK: Final = "link"
#: The traffic of a file that says none.
_USUAL_TRAFFIC: Final[Tree] = {"always": {}}


@dataclass(frozen=True)
class Topology:
    """A network, and what its parts are called."""

    specimen: evaluation_pb2.Specimen
    """Its groups run no table yet: whoever reads the files knows their numbers."""
    words: list[Words]
    """The senders of each group, in words."""
    links: list[str]
    """The name of each link."""
    traces: list[evaluation_pb2.Trace] = field(default_factory=list)


def read_topology(path: str | os.PathLike[str]) -> Topology:
    """The network in a YAML or JSON file. Raises SpecError, with one sentence, or FileError."""
    source = os.fspath(path)
    return topology_of(load_tree(path), Path(source).parent, source)


def topology_of(tree: Tree, folder: Path, source: str, *, plain: bool = False) -> Topology:
    """The network that a file's keys describe; files of recordings count from `folder`.

    With `plain` a network of one plain link is told the simulator as that, which counts nothing at
    the link; so is one whose ACKs come back over a link like the one there. Raises SpecError, which
    names everything that is wrong.
    """
    network = network_of(tree, folder, source)
    usual = chosen(Registry.TRANSPORT, network.transport) if network.transport else None
    words = [_words_of(group, usual, folder) for group in network.sender_groups]
    has_links = isinstance(tree, dict) and "links" in tree
    has_routes = any(group.HasField("route") for group in network.sender_groups)
    if not has_links and not has_routes and (plain or network.ack_bytes):
        return Topology(_plain_specimen_of(network, words), words, [])
    followed = [link.trace.sha256 for link in network.links if link.HasField("trace")]
    read = (recording_of(bytes.fromhex(each)) for each in dict.fromkeys(followed))
    traces = [recording.message() for recording in read if recording is not None]
    specimen = _specimen_of(network, words, traces)
    return Topology(specimen, words, names_of(network.links), traces)


def vary_network(tree: Tree, path: str, value: Tree, *, source: str = "the network") -> Tree:
    """The tree of a network with `value` at `path`, as in "buffer.bdp"; see `vary`."""
    return vary(tree, path, value, source=source, message=spec_pb2.NetworkModel)


def network_of(tree: Tree, folder: Path, source: str) -> spec_pb2.NetworkModel:
    """The network that a tree describes, complete, with one value for everything, and with links.

    Raises SpecError.
    """
    if not isinstance(tree, dict):
        raise SpecError(source, [Violation("", f"is {show(tree)}, but must be a network")])
    given = {"traffic": _USUAL_TRAFFIC, **tree}
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
            found += enclose_trace(link_model.trace, folder, f"links[{number}].trace")
    found += unrelated(_beyond_one_network(network), found)
    found += unrelated(check(network), found)
    if found:
        raise SpecError(source, [_as_a_network_says(each, has_links) for each in found])
    return network


def _as_a_network_says(violation: Violation, has_links: bool) -> Violation:
    """Gives a violation the path that the file has: a network without `links` has a link's keys."""
    path = violation.path
    if not has_links:
        path = path.removeprefix("links[0]").removeprefix(".")
    return replace(violation, path=path or "the network")


def _beyond_one_network(network: spec_pb2.NetworkModel) -> Iterator[Violation]:
    """Finds what only a specification may have: distributions, and tables to be designed."""
    for path, _ in _varied(network, ""):
        yield Violation(path, "has a distribution, but must have one value for everything")
    if network.HasField("senders"):
        yield Violation("senders", "is a number, but must be a list that says what each runs")
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


def _varied(message: Message, path: str) -> Iterator[tuple[str, spec_pb2.Distribution]]:
    """The quantities in a message from which draws differ, with their paths."""
    for each in fields_of(message):
        if not is_submessage(each):
            continue
        where = child_path(path, key_of(each))
        value = getattr(message, each.name)
        if each.is_repeated:
            for number, item in enumerate(value):
                yield from _varied(item, f"{where}[{number}]")
        elif isinstance(value, spec_pb2.Distribution):
            if is_varied(value):
                yield where, value
        elif message.HasField(each.name):
            yield from _varied(value, where)


def _words_of(
    group: spec_pb2.GroupModel, usual: evaluation_pb2.Choice | None, folder: Path
) -> Words:
    """A group by what its senders run, and by what results call it. A table's file counts from the
    network's folder; what is none there is a name."""
    path = group.table.path if group.HasField("table") else None
    runs = group.protocol if path is None else f"{REMYCC}{path}"
    words = Words(
        name=group.name or (f"{runs},transport={group.transport}" if group.transport else runs),
        count=int(group.count.exact),
        remycc=str(folder / path) if path and (folder / path).is_file() else path,
        protocol=chosen(Registry.PROTOCOL, group.protocol) if path is None else None,
        body=chosen(Registry.TRANSPORT, group.transport) if group.transport else None,
        rtt_ms=group.rtt_ms.exact if group.HasField("rtt_ms") else None,
    )
    return replace(words, body=words.body_or(usual))


def _specimen_of(
    network: spec_pb2.NetworkModel, words: list[Words], traces: list[evaluation_pb2.Trace]
) -> evaluation_pb2.Specimen:
    """Makes the simulator's specimen of links, and of senders whose routes lead over them."""
    known = Traces(traces)
    specimen = evaluation_pb2.Specimen(rtt_ms=network.rtt_ms.exact)
    specimen.bottleneck.packet_bytes = network.packet_bytes
    specimen.bottleneck.ack_bytes = network.ack_bytes
    rate = partial(link_rate_packets_per_ms, bytes_a_packet=network.packet_bytes)
    rates = []
    for link in network.links:
        driven = native_link(link_message(in_packets(link), rate), known)
        rates.append(driven.mean_rate_packets_per_ms(network.packet_bytes))
        whole = in_packets(link)
        if whole is not link:
            packets = _buffer_packets(network, link.buffer, rates[-1])
            whole.buffer.packets.exact = packets or 0
        specimen.links.add().CopyFrom(link_message(whole, rate))
    specimen.link_rate_packets_per_ms = min(rates, default=1.0)
    _add_senders(specimen, network, words)
    paths = paths_of(network)
    for group, senders, path in zip(network.sender_groups, specimen.senders, paths, strict=True):
        set_route(senders.route, path, path.rtt.exact)
        if not group.route.links:
            senders.route.ClearField("links")
    if not specimen.rtt_ms:
        specimen.rtt_ms = min(rtt_ms for _, rtt_ms in unloaded_paths(specimen))
    return specimen


def _plain_specimen_of(
    network: spec_pb2.NetworkModel, words: list[Words]
) -> evaluation_pb2.Specimen:
    """Makes the simulator's specimen of one link that all senders share."""
    (link,) = network.links
    rate = link_rate_packets_per_ms(link.rate_mbps.exact, network.packet_bytes)
    specimen = evaluation_pb2.Specimen(
        link_rate_packets_per_ms=rate,
        rtt_ms=network.rtt_ms.exact,
        buffer_packets=_buffer_packets(network, link.buffer, rate),
        loss_probability=link.loss_probability.exact,
        bottleneck=bottleneck(
            chosen(Registry.QUEUE, link.queue) if link.queue else None,
            network.packet_bytes,
            network.ack_bytes,
        ),
    )
    _add_senders(specimen, network, words)
    return specimen


def _buffer_packets(
    network: spec_pb2.NetworkModel, buffer: spec_pb2.Buffer, rate: float
) -> int | None:
    """Packets that the queue of a link holds; None: as many as come."""
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
    return min(int(packets), MOST_BUFFER_PACKETS)


def _add_senders(
    specimen: evaluation_pb2.Specimen, network: spec_pb2.NetworkModel, words: list[Words]
) -> None:
    """Adds the senders to a specimen, with their loads, and the noise of their measurements."""
    rate = specimen.link_rate_packets_per_ms
    rate_mbps = rate_in_mbps(rate, network.packet_bytes)
    if network.HasField("measurement"):
        drawn = noise(network.measurement, _exactly, 1 / rate)
        specimen.measurement.SetInParent()
        set_measurement(specimen.measurement, network.measurement, drawn)
    shared = sum(each.count.exact for each in network.sender_groups if not each.HasField("traffic"))
    for group, said in zip(network.sender_groups, words, strict=True):
        senders = specimen.senders.add(count=said.count)
        senders.MergeFrom(said.group(None))
        has_own = group.HasField("traffic")
        load = group.traffic if has_own else network.traffic
        count = group.count.exact if has_own else shared
        set_traffic(senders.traffic, load, *drawn_of_load(load, _exactly, count, rate_mbps))
        set_group(senders, group)


def _exactly(quantity: spec_pb2.Distribution, _: int) -> float:
    return quantity.exact
