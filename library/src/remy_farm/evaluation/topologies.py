"""One network, from a file or from keys: links, routes over them, and groups of senders.

Links and senders have the keys of a specification's network, with one value for everything; loads,
routes and measurement are fields of messages in proto/remy_farm/v1/evaluation.proto
(docs/networks.md).
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from remy_farm.evaluation.measures import link_rate_packets_per_ms, unloaded_paths
from remy_farm.evaluation.senders import (
    MOST_SENDERS,
    USUAL_PACKET_BYTES,
    Words,
    carried_by,
    parse_sender,
    words_of_table,
)
from remy_farm.specification.checking import check, load_tree
from remy_farm.specification.enclosures import enclose_trace, recording_of
from remy_farm.specification.links import distributions, link_message, names_of
from remy_farm.specification.networks import is_varied
from remy_farm.specification.reading import Tree, fill, nearest
from remy_farm.specification.schema import Bounds, SpecError, Violation, show
from remy_farm.specification.traces import read_trace
from remy_proto.completion import complete
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator import registry
from remy_simulator.messages import native_link, packet_bytes
from remy_simulator.registry import Registry
from remy_simulator.traces import Traces

#: Keys of a network's one link, where it has no `links`.
_ONE_LINK: Final = ("rate_mbps", "buffer", "loss_probability", "queue")
_KEYS = [
    *("links", *_ONE_LINK, "rtt_ms", "packet_bytes", "ack_bytes", "measurement"),
    *("senders", "transport", "traffic"),
]
#: What offers load where nothing else is said.
_USUAL_TRAFFIC: Final[Tree] = {"always": {}}
_BYTES = Bounds(unit="bytes", minimum=0, maximum=1_000_000, integral=True)
_RTT_MS = Bounds(unit="ms", minimum=0, maximum=1_000_000)


@dataclass(frozen=True)
class Topology:
    """A network, and what its parts are called."""

    specimen: evaluation_pb2.Specimen
    """Its groups run no table yet: whoever reads the files knows their numbers."""
    words: list[Words]
    """What each group runs, by what it is called."""
    links: list[str]
    """What each link is called."""
    traces: list[evaluation_pb2.Trace] = field(default_factory=list)


def read_topology(path: str | os.PathLike[str]) -> Topology:
    """The network in a YAML or JSON file. Raises SpecError, with one sentence, or FileError."""
    source = os.fspath(path)
    return topology_of(load_tree(path), Path(source).parent, source)


def topology_of(tree: Tree, folder: Path, source: str) -> Topology:
    """The network that a file's keys describe; files of recordings count from `folder`."""
    if not isinstance(tree, dict):
        raise SpecError(source, [Violation("", f"is {show(tree)}, but must be a network")])
    reader = _NetworkReader(folder)
    topology = reader.network(tree)
    if reader.found:
        raise SpecError(source, reader.found)
    return topology


#: What an opportunity of a trace is worth, by the names of docs/networks.md.
SEMANTICS: Final = ("ns2", "mahimahi", "cellsim")


def follow_trace(
    specimen: evaluation_pb2.Specimen, path: str | os.PathLike[str], semantics: str, *, ends: bool
) -> evaluation_pb2.Trace:
    """Has the one link of a specimen follow the recording in a file, in place of its rate.

    Half of the RTT lies on the way there: in Cellsim's semantics before the queue, for all senders
    alike. Raises FileError, and ValueError where a sender has an RTT of its own in these.
    """
    trace = read_trace(path).message()
    link = specimen.links.add(
        loss_probability=specimen.loss_probability,
        trace={
            "sha256": trace.sha256,
            "semantics": f"TRACE_SEMANTICS_{semantics.upper()}",
            "ends": ends,
        },
    )
    if specimen.HasField("buffer_packets"):
        link.buffer_packets = specimen.buffer_packets
    if specimen.bottleneck.HasField("queue"):
        link.queue.CopyFrom(specimen.bottleneck.queue)
    for name in ("loss_probability", "buffer_packets"):
        specimen.ClearField(name)
    specimen.bottleneck.ClearField("queue")
    before_queue = semantics == "cellsim"
    if before_queue:
        link.delay_ms = specimen.rtt_ms / 2
    for group in specimen.senders:
        if not group.HasField("route"):
            group.route.delay_ms = 0 if before_queue else specimen.rtt_ms / 2
            group.route.return_delay_ms = specimen.rtt_ms / 2
        elif before_queue:
            raise ValueError("a link of Cellsim's semantics has one RTT for all senders")
    native = native_link(link, Traces([trace]))
    bytes_a_packet = packet_bytes(specimen.bottleneck)
    specimen.link_rate_packets_per_ms = native.mean_rate_packets_per_ms(bytes_a_packet)
    return trace


class _NetworkReader:
    def __init__(self, folder: Path) -> None:
        self.found: list[Violation] = []
        self._folder = folder

    def network(self, tree: dict[str, Tree]) -> Topology:
        for key in tree:
            if key not in _KEYS:
                self._refuse(key, f"is not a known key; {nearest(key, _KEYS)}")
        sizes = {
            key: value
            for key in ("packet_bytes", "ack_bytes")
            if (value := self._taken(tree, key, "", self._number(_BYTES))) is not None
        }
        packet_bytes = sizes.get("packet_bytes", USUAL_PACKET_BYTES)
        plain: dict[str, Tree] = {
            key: tree[key] for key in ("rtt_ms", "measurement") if key in tree
        }
        transport = self._taken(tree, "transport", "", self._transport)
        models = self._links(tree)
        names = names_of(models)
        words: list[Words] = []
        groups: list[Tree] = []
        for number, given in enumerate(self._list(tree, "senders")):
            path = f"senders[{number}]"
            group = dict(given) if isinstance(given, dict) else {}
            said = self._controller(given, group, path)
            name = self._taken(group, "name", path, self._text)
            rtt_ms = self._taken(group, "rtt_ms", path, self._number(_RTT_MS))
            group.setdefault("count", 1 if said is None else said.count)
            group.setdefault("traffic", copy.deepcopy(tree.get("traffic", _USUAL_TRAFFIC)))
            if isinstance(route := group.get("route"), dict):
                for key in ("delay_ms", "return_delay_ms"):
                    if rtt_ms is not None and key in route:
                        self._refuse(f"{path}.route.{key}", "is given beside rtt_ms")
                group["route"] = {key: _numbered(route[key], names) for key in route}
            groups.append(group)
            if said is not None:
                carried = said.body_or(transport)
                rtt_ms = said.rtt_ms if rtt_ms is None else rtt_ms
                words.append(replace(said, name=name or said.name, body=carried, rtt_ms=rtt_ms))
        specimen = evaluation_pb2.Specimen()
        self.found += fill(specimen, {**plain, "senders": groups}, needs_alternatives=False)
        specimen.bottleneck.packet_bytes = packet_bytes
        specimen.bottleneck.ack_bytes = sizes.get("ack_bytes", 0)
        if not self.found:
            rate = partial(link_rate_packets_per_ms, bytes_a_packet=packet_bytes)
            specimen.links.extend(link_message(model, rate) for model in models)
        followed = (link.trace.sha256 for link in specimen.links if link.HasField("trace"))
        read = (recording_of(each) for each in dict.fromkeys(followed))
        traces = [recording.message() for recording in read if recording is not None]
        self._check_routes(specimen, len(models))
        if len(set(names)) < len(names):
            self._refuse("links", "have the same name twice")
        if not self.found:
            groups_of = zip(words, specimen.senders, strict=True)
            words = [replace(said, count=group.count) for said, group in groups_of]
            try:
                _complete(specimen, words, Traces(traces))
            except ValueError as problem:
                self._refuse("links", str(problem))
        return Topology(specimen, words, names, traces)

    def _links(self, tree: dict[str, Tree]) -> list[spec_pb2.LinkModel]:
        """The links, or the one that the network's own keys describe."""
        one: dict[str, Tree] = {key: tree[key] for key in _ONE_LINK if key in tree}
        if "links" not in tree and one:
            return [self._link({"name": "link", **one}, "")]
        for key in one:
            self._refuse(key, "is given beside links, which say it each")
        models = []
        for number, link in enumerate(self._list(tree, "links")):
            if isinstance(link, dict):
                models.append(self._link(link, f"links[{number}]"))
            else:
                self._refuse(f"links[{number}]", f"is {show(link)}, but must be a mapping")
        return models

    def _controller(self, given: Tree, group: dict[str, Any], path: str) -> Words | None:
        """What a group runs; its keys that say so are taken out."""
        said: Words | None
        if isinstance(given, str):
            said = self._taken({"words": given}, "words", path, self._words)
            return said
        if not isinstance(given, dict):
            self._refuse(path, f"is {show(given)}, but must be a mapping, or words as cubic=2")
            return None
        if "sender" in group:
            self._refuse(f"{path}.sender", "is not a known key; it is protocol or table now")
            return None
        controllers = [key for key in ("protocol", "table") if key in group]
        if len(controllers) != 1:
            self._refuse(path, "must have one of the keys protocol, table")
            return None
        (key,) = controllers
        said = self._taken(group, key, path, self._protocol if key == "protocol" else self._table)
        transport = self._taken(group, "transport", path, self._transport)
        if said is None or transport is None:
            return said
        try:
            return carried_by(said, transport)
        except ValueError as problem:
            self._refuse(f"{path}.transport", str(problem))
            return None

    def _link(self, tree: dict[str, Tree], path: str) -> spec_pb2.LinkModel:
        """A link as specifications have it, of which everything must have a value here."""
        link = spec_pb2.LinkModel()
        found = fill(link, tree)
        complete(link)
        if not found and link.HasField("trace"):
            found += enclose_trace(link.trace, self._folder, "trace")
        found = found or [*check(link)]
        if not found and any(is_varied(each) for _, each in distributions(link)):
            found = [Violation("", "has a distribution, but must have one value for everything")]
        for each in found:
            self._refuse(".".join(filter(None, (path, each.path))), each.problem)
        return link

    def _check_routes(self, specimen: evaluation_pb2.Specimen, links: int) -> None:
        for number, group in enumerate(specimen.senders):
            for name in ("links", "return_links"):
                for link in getattr(group.route, name):
                    if link >= links:
                        self._refuse(
                            f"senders[{number}].route.{name}",
                            f"has link {link}, but there are {links}, numbered from 0",
                        )
            if not 1 <= group.count <= MOST_SENDERS:
                self._refuse(
                    f"senders[{number}].count",
                    f"is {group.count}, but must be a whole number from 1 to {MOST_SENDERS}",
                )
            if group.traffic.WhichOneof("on") is None:
                names = [field.name for field in group.traffic.DESCRIPTOR.oneofs[0].fields]
                self._refuse(
                    f"senders[{number}].traffic", f"must have one of the keys {', '.join(names)}"
                )

    def _list(self, tree: dict[str, Tree], key: str) -> list[Tree]:
        given = tree.get(key)
        if isinstance(given, list) and given:
            return given
        self._refuse(key, "is missing" if given is None else "must be a list")
        return []

    def _taken(
        self, mapping: dict[str, Tree], key: str, path: str, read: Callable[[Tree], Any]
    ) -> Any:
        """What stands at a key, which is no field of a message; none if there is none."""
        if key not in mapping:
            return None
        value = mapping.pop(key) if path else mapping[key]
        try:
            return read(value)
        except ValueError as problem:
            self._refuse(f"{path}.{key}" if path else key, str(problem))
            return None

    def _number(self, bounds: Bounds) -> Callable[[Tree], float]:
        def read(value: Tree) -> float:
            problem = bounds.problem(value)
            if problem is not None:
                raise ValueError(problem)
            assert isinstance(value, int | float)
            return value

        return read

    @staticmethod
    def _text(value: Tree) -> str:
        if isinstance(value, str) and value.isprintable() and value:
            return value
        raise ValueError(f"is {show(value)}, but must be text")

    @staticmethod
    def _words(value: Tree) -> Words:
        return parse_sender(str(value))

    def _protocol(self, value: Tree) -> Words:
        try:
            said = parse_sender(self._text(value))
        except ValueError as problem:
            raise ValueError(f"is {show(value)}: {problem}") from problem
        if said.remycc is not None:
            raise ValueError(f"is {show(value)}; the key of a RemyCC's file is table")
        if said.count != 1 or said.rtt_ms is not None:
            raise ValueError(f"is {show(value)}; count and rtt_ms have keys of their own")
        return said

    def _table(self, value: Tree) -> Words:
        return words_of_table(self._text(value))

    def _transport(self, value: Tree) -> evaluation_pb2.Choice:
        try:
            return registry.parse(Registry.BODY, self._text(value))
        except ValueError as problem:
            raise ValueError(f"is {show(value)}: {problem}") from problem

    def _refuse(self, path: str, problem: str) -> None:
        self.found.append(Violation(path, problem))


def _numbered(route: Tree, names: list[str]) -> Tree:
    """The links of a route by their numbers, whether it has names or numbers."""
    if not isinstance(route, list):
        return route
    return [names.index(each) if each in names else each for each in route]


def _complete(specimen: evaluation_pb2.Specimen, words: list[Words], traces: Traces) -> None:
    """Senders, and what throughputs and delays are compared with where nothing else says."""
    for group, said in zip(specimen.senders, words, strict=True):
        group.MergeFrom(said.group(None))
        if not group.HasField("route"):
            group.route.SetInParent()
            group.route.delay_ms = specimen.rtt_ms / 2
            group.route.return_delay_ms = specimen.rtt_ms / 2
    size = specimen.bottleneck.packet_bytes
    rates = [native_link(link, traces).mean_rate_packets_per_ms(size) for link in specimen.links]
    specimen.link_rate_packets_per_ms = min(rates, default=1.0)
    if not specimen.rtt_ms:
        specimen.rtt_ms = min(rtt_ms for _, rtt_ms in unloaded_paths(specimen)) or 1.0
