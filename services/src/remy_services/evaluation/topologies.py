"""Networks of several links from a file: links, routes over them, and groups of senders.

The keys are the fields of a Specimen message and those in it (proto/remy_farm/v1/evaluation.proto),
but for what words say better: who sends, a queue, a link's rate in Mbit/s (docs/networks.md).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from remy_farm.v1 import evaluation_pb2
from remy_services.evaluation.measures import link_rate_packets_per_ms, unloaded_paths
from remy_services.evaluation.senders import (
    MOST_SENDERS,
    USUAL_PACKET_BYTES,
    Words,
    parse_sender,
)
from remy_services.specification.checking import load_tree
from remy_services.specification.reading import Tree, fill, nearest
from remy_services.specification.schema import Bounds, SpecError, Violation, show
from remy_services.specification.traces import RecordedLink, read_trace
from remy_simulator import registry
from remy_simulator.messages import native_link, packet_bytes
from remy_simulator.registry import Registry
from remy_simulator.traces import Traces

_KEYS = ["links", "senders", "packet_bytes", "ack_bytes", "rtt_ms", "measurement"]
_RATE = Bounds(unit="Mbit/s", minimum=0, exclusive_minimum=True)
_BYTES = Bounds(unit="bytes", minimum=0, maximum=1_000_000, integral=True)


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
    tree = load_tree(path)
    if not isinstance(tree, dict):
        raise SpecError(source, [Violation("", f"is {show(tree)}, but must be a network")])
    reader = _NetworkReader(Path(source).parent)
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
        names: list[str] = []
        queues: dict[int, evaluation_pb2.Choice] = {}
        traces: dict[int, RecordedLink] = {}
        links: list[Tree] = []
        for number, link in self._mappings(tree, "links"):
            path = f"links[{number}]"
            names.append(self._taken(link, "name", path, self._text) or str(number))
            queue = self._taken(link, "queue", path, self._queue)
            if queue is not None:
                queues[number] = queue
            rate = self._taken(link, "rate_mbps", path, self._number(_RATE))
            if rate is not None:
                link["rate_packets_per_ms"] = link_rate_packets_per_ms(rate, packet_bytes)
            if isinstance(driver := link.get("trace"), dict):
                link["trace"] = driver = dict(driver)
                trace = self._taken(driver, "file", f"{path}.trace", self._trace)
                if trace is not None:
                    traces[number] = trace
                elif not any(each.path.startswith(f"{path}.trace") for each in self.found):
                    self._refuse(f"{path}.trace.file", "must name the file of a recording")
            links.append(link)
        words: list[Words] = []
        groups: list[Tree] = []
        for number, group in self._mappings(tree, "senders"):
            path = f"senders[{number}]"
            said = self._taken(group, "sender", path, self._sender)
            if said is None and not any(each.path.startswith(path) for each in self.found):
                self._refuse(f"{path}.sender", "must say what sends, as cubic or remycc:FILE")
            name = self._taken(group, "name", path, self._text)
            group.setdefault("count", 1)
            for key in ("table", "protocol", "body"):
                if key in group:
                    self._refuse(f"{path}.{key}", "is not a known key; say it in sender")
            groups.append(group)
            if said is not None:
                words.append(replace(said, name=name or said.name))
        specimen = evaluation_pb2.Specimen()
        self.found += fill(
            specimen, {**plain, "links": links, "senders": groups}, needs_alternatives=False
        )
        specimen.bottleneck.packet_bytes = packet_bytes
        specimen.bottleneck.ack_bytes = sizes.get("ack_bytes", 0)
        for number, queue in queues.items():
            if number < len(specimen.links):
                specimen.links[number].queue.CopyFrom(queue)
        held: dict[bytes, evaluation_pb2.Trace] = {}
        for number, trace in traces.items():
            if number < len(specimen.links):
                specimen.links[number].trace.sha256 = trace.sha256
            held[trace.sha256] = trace.message()
        self._check_routes(specimen)
        if len(set(names)) < len(names):
            self._refuse("links", "have the same name twice")
        if not self.found:
            groups_of = zip(words, specimen.senders, strict=True)
            words = [replace(said, count=group.count) for said, group in groups_of]
            try:
                _complete(specimen, words, Traces(held.values()))
            except ValueError as problem:
                self._refuse("links", str(problem))
        return Topology(specimen, words, names, list(held.values()))

    def _check_routes(self, specimen: evaluation_pb2.Specimen) -> None:
        links = len(specimen.links)
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

    def _mappings(self, tree: dict[str, Tree], key: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """Copies of the mappings in a list, to take keys out of."""
        given = tree.get(key)
        if not isinstance(given, list) or not given:
            self._refuse(key, "is missing" if given is None else "must be a list of mappings")
            return
        for number, each in enumerate(given):
            if isinstance(each, dict):
                yield number, dict(each)
            else:
                self._refuse(f"{key}[{number}]", f"is {show(each)}, but must be a mapping")

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

    def _sender(self, value: Tree) -> Words:
        try:
            said = parse_sender(self._text(value))
        except ValueError as problem:
            raise ValueError(f"is {show(value)}: {problem}") from problem
        if said.count != 1 or said.rtt_ms is not None:
            raise ValueError(f"is {show(value)}; count and route have keys of their own")
        return said

    def _queue(self, value: Tree) -> evaluation_pb2.Choice:
        try:
            return registry.parse(Registry.QUEUE, self._text(value))
        except ValueError as problem:
            raise ValueError(f"is {show(value)}: {problem}") from problem

    def _trace(self, value: Tree) -> RecordedLink:
        return read_trace(self._folder / self._text(value))

    def _refuse(self, path: str, problem: str) -> None:
        self.found.append(Violation(path, problem))


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
