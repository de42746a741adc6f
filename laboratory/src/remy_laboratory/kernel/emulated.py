"""Emulated links: one link of a network's description, as the emulator of a link can be told it."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from remy_farm.evaluation import Topology, topology_of
from remy_farm.specification import SpecError, Violation
from remy_farm.specification.links import KILOBITS_PER_PACKET
from remy_farm.specification.specimens import unloaded_paths
from remy_proto.v1 import spec_pb2

_US_PER_MS: Final = 1000.0
_BITS_PER_MBIT: Final = 1e6
#: Stands for the real senders, as a network's description must name one.
_ANYBODY: Final = {"table": "the RemyCC"}
#: Keys of a network that say who sends, and when.
_OF_SENDERS: Final = ("senders", "transport", "traffic")
_USUAL: Final[Mapping[str, Any]] = {"rate_mbps": 15.0, "buffer": {"packets": 1000}}
_USUAL_RTT_MS: Final = 150.0
#: The fields of a link, and of a measurement, that kernel/link_emulator.c implements.
_OF_A_LINK: Final = frozenset(
    {"rate_packets_per_ms", "buffer_packets", "loss_probability", "trace", "jitter_box", "delay_ms"}
)
_OF_MEASUREMENT: Final = frozenset({"exponential_jitter_mean_ms"})


class Link:
    """An emulated link, by the keys of a network's file; it never changes."""

    def __init__(
        self, *, folder: str | os.PathLike[str] = ".", source: str = "the link", **keys: Any
    ) -> None:
        """The link with these keys.

        Args:
            folder: Where the files of recordings are that it names.
            source: What errors call it.
            **keys: `rate_mbps` (15 unless given), `rtt_ms` (150), `buffer` (1,000 packets),
                `loss_probability`, `measurement` with an exponential jitter, by which ACKs come
                late; or `links` with one link, which may have a `trace` or a `jitter_box`.

        Raises:
            SpecError: A key is unknown, a value is not allowed, or the emulator has no such thing.
            FileError: A recording cannot be read.
        """
        self.tree: dict[str, Any] = {"rtt_ms": _USUAL_RTT_MS, **copy.deepcopy(keys)}
        if isinstance(links := self.tree.get("links"), list):
            for link in links:
                if isinstance(link, dict):
                    link.setdefault("buffer", _USUAL["buffer"])
        else:
            self.tree = {**_USUAL, **self.tree}
        self._folder = Path(folder)
        self._source = source
        for key in _OF_SENDERS:
            if key in self.tree:
                self._refuse(key, "is given, but senders are sockets of this machine")
        self._specimen = self._network(self.tree, [_ANYBODY]).specimen
        self._refuse_what_is_not_emulated()
        (self._link,) = self._specimen.links

    def _network(self, tree: Mapping[str, Any], senders: Sequence[Any]) -> Topology:
        whole = {**copy.deepcopy(dict(tree)), "senders": [*senders]}
        return topology_of(whole, self._folder, self._source)

    def _refuse_what_is_not_emulated(self) -> None:
        links = self._specimen.links
        if len(links) != 1:
            self._refuse("links", f"has {len(links)} links, but one is emulated")
        path = "links[0]." if "links" in self.tree else ""
        for field, _ in links[0].ListFields():
            if field.name not in _OF_A_LINK:
                self._refuse(f"{path}{field.name}", "is given, but is not emulated")
        if links[0].jitter_box.random.reorders:
            self._refuse(f"{path}jitter_box.random.reorders", "is true, but nothing is reordered")
        if not links[0].HasField("buffer_packets"):
            self._refuse(f"{path}buffer", "is infinite, but a queue is limited")
        for field, value in self._specimen.measurement.ListFields():
            if field.name not in _OF_MEASUREMENT and value:
                self._refuse("measurement", f"has {field.name}, but only an exponential jitter is")
        bottleneck = self._specimen.bottleneck
        for name, usual in (("packet_bytes", 1500), ("ack_bytes", 0)):
            if getattr(bottleneck, name) != usual:
                self._refuse(name, f"is given, but must be {usual}, as Linux sends")

    def _refuse(self, path: str, problem: str) -> None:
        raise SpecError(self._source, [Violation(path, problem)])

    @property
    def rate_mbps(self) -> float:
        """Its rate; of a recording the mean, Mbit/s."""
        return self._specimen.link_rate_packets_per_ms * KILOBITS_PER_PACKET

    @property
    def rtt_ms(self) -> float:
        """The RTT of an empty queue."""
        ((_, rtt_ms),) = unloaded_paths(self._specimen)
        return rtt_ms

    @property
    def jitter_ms(self) -> float:
        """The mean of the exponentially distributed time by which ACKs come late."""
        return self._specimen.measurement.exponential_jitter_mean_ms

    def words(self, seed: int) -> list[str]:
        """The words that kernel/link_emulator.c takes."""
        link = self._link
        numbers = (
            self.rate_mbps * _BITS_PER_MBIT,
            self.rtt_ms * _US_PER_MS,
            link.buffer_packets,
            link.loss_probability,
            self.jitter_ms * _US_PER_MS,
            seed,
        )
        said = [f"{each:.12g}" for each in numbers]
        if link.HasField("trace"):
            semantics = spec_pb2.TraceSemantics.Name(link.trace.semantics)
            word = semantics.removeprefix("TRACE_SEMANTICS_").lower()
            path = self._folder / self.tree["links"][0]["trace"]["path"]
            said += ["trace", word, "ends" if link.trace.ends else "again", str(path)]
        if (kind := link.jitter_box.WhichOneof("holds")) is not None:
            said += ["hold", kind]
            for field, value in getattr(link.jitter_box, kind).ListFields():
                is_time = field.name.endswith("_ms")
                said.append(f"{value * _US_PER_MS if is_time else value:.12g}")
        return said

    def with_senders(self, senders: Sequence[Mapping[str, Any]], *, jitter_ms: float) -> Topology:
        """The simulator's network of this link with these senders, whose ACKs have such a jitter.

        In Cellsim's semantics the way there lies before the queue, as the emulator has it.
        """
        tree = {key: value for key, value in self.tree.items() if key != "measurement"}
        if jitter_ms:
            tree["measurement"] = {"jitter": {"exponential_mean_ms": jitter_ms}}
        if self._link.trace.semantics == spec_pb2.TRACE_SEMANTICS_CELLSIM:
            there_ms = self.rtt_ms / 2
            tree = copy.deepcopy(tree)
            tree["links"][0]["delay_ms"] = there_ms
            route = {"delay_ms": 0, "return_delay_ms": self.rtt_ms - there_ms}
            senders = [{**each, "route": route} for each in senders]
        return self._network(tree, senders)
