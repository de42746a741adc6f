"""Describes emulated links, with the keys of a network's description."""

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
#: A network's description must name senders; this entry represents the real sockets.
_PLACEHOLDER_SENDER: Final = {"table": "the RemyCC"}
#: Keys of a network that describe senders, which the emulator does not have.
_SENDER_KEYS: Final = ("senders", "transport", "traffic")
_DEFAULTS: Final[Mapping[str, Any]] = {"rate_mbps": 15.0, "buffer": {"packets": 1000}}
_DEFAULT_RTT_MS: Final = 150.0
#: The fields of a link, and of a measurement, that kernel/link_emulator.c implements.
_EMULATED_LINK_FIELDS: Final = frozenset(
    {"rate_packets_per_ms", "buffer_packets", "loss_probability", "trace", "jitter_box", "delay_ms"}
)
_EMULATED_MEASUREMENT_FIELDS: Final = frozenset({"exponential_jitter_mean_ms"})


class Link:
    """An immutable emulated link, described by the keys of a network file."""

    def __init__(
        self, *, folder: str | os.PathLike[str] = ".", source: str = "the link", **keys: Any
    ) -> None:
        """Creates a link from the keys of a network file.

        Args:
            folder: Directory that file names of trace recordings are relative to.
            source: Name of the link in error messages.
            **keys: `rate_mbps` (default 15), `rtt_ms` (default 150), `buffer` (default 1,000
                packets), `loss_probability`, and `measurement` with exponential jitter, which
                delays ACKs. Alternatively `links` with one link, which may have a `trace` or a
                `jitter_box`.

        Raises:
            SpecError: A key is unknown, or a value is invalid or cannot be emulated.
            FileError: A trace recording cannot be read.
        """
        self.keys: dict[str, Any] = {"rtt_ms": _DEFAULT_RTT_MS, **copy.deepcopy(keys)}
        if isinstance(links := self.keys.get("links"), list):
            for link in links:
                if isinstance(link, dict):
                    link.setdefault("buffer", _DEFAULTS["buffer"])
        else:
            self.keys = {**_DEFAULTS, **self.keys}
        self._folder = Path(folder)
        self._source = source
        for key in _SENDER_KEYS:
            if key in self.keys:
                self._refuse(key, "is given, but the senders are sockets of this machine")
        self._specimen = self._topology(self.keys, [_PLACEHOLDER_SENDER]).specimen
        self._check_emulated()
        (self._link,) = self._specimen.links

    def _topology(self, keys: Mapping[str, Any], senders: Sequence[Any]) -> Topology:
        network = {**copy.deepcopy(dict(keys)), "senders": [*senders]}
        return topology_of(network, self._folder, self._source)

    def _check_emulated(self) -> None:
        """Raises SpecError for a property of the network that the emulator does not implement."""
        links = self._specimen.links
        if len(links) != 1:
            self._refuse("links", f"has {len(links)} links, but only one can be emulated")
        path = "links[0]." if "links" in self.keys else ""
        for field, _ in links[0].ListFields():
            if field.name not in _EMULATED_LINK_FIELDS:
                self._refuse(f"{path}{field.name}", "is given, but cannot be emulated")
        if links[0].jitter_box.random.reorders:
            self._refuse(
                f"{path}jitter_box.random.reorders", "is true, but the emulator never reorders"
            )
        if not links[0].HasField("buffer_packets"):
            self._refuse(f"{path}buffer", "is infinite, but the emulated queue needs a limit")
        for field, value in self._specimen.measurement.ListFields():
            if field.name not in _EMULATED_MEASUREMENT_FIELDS and value:
                self._refuse(
                    "measurement", f"has {field.name}, but only exponential jitter is emulated"
                )
        bottleneck = self._specimen.bottleneck
        for name, required in (("packet_bytes", 1500), ("ack_bytes", 0)):
            if getattr(bottleneck, name) != required:
                self._refuse(name, f"is given, but must be {required}, as Linux sends packets")

    def _refuse(self, path: str, problem: str) -> None:
        raise SpecError(self._source, [Violation(path, problem)])

    @property
    def rate_mbps(self) -> float:
        """The rate, Mbit/s; the mean rate of a trace."""
        return self._specimen.link_rate_packets_per_ms * KILOBITS_PER_PACKET

    @property
    def rtt_ms(self) -> float:
        """The RTT when the queue is empty, ms."""
        ((_, rtt_ms),) = unloaded_paths(self._specimen)
        return rtt_ms

    @property
    def jitter_ms(self) -> float:
        """The mean of the exponentially distributed delay of ACKs, ms."""
        return self._specimen.measurement.exponential_jitter_mean_ms

    def emulator_arguments(self, seed: int) -> list[str]:
        """Returns the arguments of kernel/link_emulator.c."""
        link = self._link
        numbers = (
            self.rate_mbps * _BITS_PER_MBIT,
            self.rtt_ms * _US_PER_MS,
            link.buffer_packets,
            link.loss_probability,
            self.jitter_ms * _US_PER_MS,
            seed,
        )
        arguments = [f"{number:.12g}" for number in numbers]
        if link.HasField("trace"):
            semantics = spec_pb2.TraceSemantics.Name(link.trace.semantics)
            name = semantics.removeprefix("TRACE_SEMANTICS_").lower()
            path = self._folder / self.keys["links"][0]["trace"]["path"]
            arguments += ["trace", name, "ends" if link.trace.ends else "again", str(path)]
        if (kind := link.jitter_box.WhichOneof("holds")) is not None:
            arguments += ["hold", kind]
            for field, value in getattr(link.jitter_box, kind).ListFields():
                is_time = field.name.endswith("_ms")
                arguments.append(f"{value * _US_PER_MS if is_time else value:.12g}")
        return arguments

    def with_senders(self, senders: Sequence[Mapping[str, Any]], *, jitter_ms: float) -> Topology:
        """Returns the simulator's network for this link and these senders, with jitter of ACKs.

        With Cellsim's semantics, the outbound delay comes before the queue, as in the emulator.
        """
        keys = {key: value for key, value in self.keys.items() if key != "measurement"}
        if jitter_ms:
            keys["measurement"] = {"jitter": {"exponential_mean_ms": jitter_ms}}
        if self._link.trace.semantics == spec_pb2.TRACE_SEMANTICS_CELLSIM:
            outbound_ms = self.rtt_ms / 2
            keys = copy.deepcopy(keys)
            keys["links"][0]["delay_ms"] = outbound_ms
            route = {"delay_ms": 0, "return_delay_ms": self.rtt_ms - outbound_ms}
            senders = [{**sender, "route": route} for sender in senders]
        return self._topology(keys, senders)
