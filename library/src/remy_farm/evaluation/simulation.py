"""Simulates one network and measures each sender, each kind of senders and each link."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from remy_farm.evaluation.measures import (
    PACKET_MEASURES,
    PacketMeasures,
    SenderMeasures,
    SpecimenMeasures,
    TransportMeasures,
    mean,
    measure_packets,
    measure_senders,
    measure_specimen,
    measure_transport,
    measures_tree,
    present,
)
from remy_farm.specification.network_files import Topology
from remy_farm.specification.senders import SenderSpec
from remy_proto.v1 import evaluation_pb2
from remy_simulator import RuleTable, _native, columns, evaluate_columns
from remy_simulator.messages import from_native, is_plain, packet_bytes

_MS_PER_SECOND = 1000.0


@dataclass(frozen=True)
class SenderKind(PacketMeasures):
    """The senders of one name. Throughputs are means over those that were on, and `delay_ms` is the
    mean over those that received packets."""

    name: str
    #: Indices of the senders.
    senders: list[int]
    #: Name of the field that counts as throughput: `packets_received` or `packets_in_order`.
    throughput_of: str
    throughput_mbps: float | None
    throughput_equal_share_mbps: float | None
    delay_ms: float | None
    packets_received: int
    packets_lost: int
    #: None if the network has only RemyCCs on datagram before a drop-tail queue.
    transport: TransportMeasures | None

    def tree(self) -> dict[str, Any]:
        """The fields as a JSON object."""
        tree = measures_tree(self) | {"senders": len(self.senders)}
        transport = tree.pop("transport") or {}
        return {"kind": tree.pop("name"), **tree, **transport}


@dataclass(frozen=True)
class Simulation:
    """The results of one simulated network."""

    specimen: evaluation_pb2.Specimen
    senders: Sequence[SenderMeasures]
    #: By sender; empty if the network has only RemyCCs on datagram before a drop-tail queue.
    transports: Sequence[TransportMeasures]
    kinds: Sequence[SenderKind]
    means: SpecimenMeasures
    #: Counts of packets and ACKs at each link, as JSON objects.
    links: Sequence[Mapping[str, Any]]
    seconds: float
    seed: int
    #: CPU time of the simulation.
    cpu_seconds: float
    #: Digest of the exact results of every sender.
    digest: str
    #: The recording over time; None unless one was requested.
    recording: _native.NetworkRecording | None
    record_every_ms: float
    #: The packets and ACKs of one sender; None unless a capture was requested.
    capture: _native.PacketCapture | None = None

    @property
    def kind_names(self) -> list[str]:
        """The name of each sender's kind."""
        names = {sender: kind.name for kind in self.kinds for sender in kind.senders}
        return [names[sender] for sender in range(len(self.senders))]

    def sender_trees(self) -> list[dict[str, Any]]:
        """The results of each sender as a JSON object."""
        if not self.transports:
            return [measures_tree(sender) for sender in self.senders]
        throughput_of = {kind.name: kind.throughput_of for kind in self.kinds}
        return [
            {
                "kind": name,
                "throughput_of": throughput_of[name],
                **measures_tree(sender),
                **asdict(transport),
            }
            for name, sender, transport in zip(
                self.kind_names, self.senders, self.transports, strict=True
            )
        ]

    def tree(self, *, shows_kinds: bool = True) -> dict[str, Any]:
        """All results as a JSON object."""
        return {
            "senders": self.sender_trees(),
            **({"kinds": [kind.tree() for kind in self.kinds]} if shows_kinds else {}),
            **({"links": [dict(link) for link in self.links]} if self.links else {}),
            "throughput_over_link_rate": self.means.throughput_over_link_rate,
            "delay_over_rtt": self.means.delay_over_rtt,
            "normalized_score_per_sender": self.means.normalized_score_per_sender,
            "senders_left_out": self.means.senders_left_out,
            **{name: getattr(self.means, name) for name in PACKET_MEASURES},
            "packets_received": sum(sender.packets_received for sender in self.senders),
            "simulated_seconds": self.seconds,
            "seed": self.seed,
            "cpu_seconds": self.cpu_seconds,
            "digest": self.digest,
        }


def simulate_topology(
    network: Topology,
    tables: Mapping[str, RuleTable],
    *,
    seconds: float,
    seed: int,
    record_every_ms: float | None = None,
    capture_sender: int | None = None,
) -> Simulation:
    """Simulates a network for `seconds`, and measures the results.

    `tables` holds the rule table of each RemyCC file that senders name. With `record_every_ms`, the
    network's state is recorded at that interval. With `capture_sender`, all that this sender sends
    and receives is captured. Raises InvalidRequest.
    """
    specimen = evaluation_pb2.Specimen()
    specimen.CopyFrom(network.specimen)
    files = list(tables)
    for group, spec in zip(specimen.senders, network.sender_specs, strict=True):
        if spec.remycc is not None:
            group.table = files.index(spec.remycc)
    request = evaluation_pb2.EvaluationRequest(
        tables=[from_native(table) for table in tables.values()],
        candidates=[evaluation_pb2.Candidate()],
        specimens=[specimen],
        duration_ms=seconds * _MS_PER_SECOND,
        seed=seed,
        traces=network.traces,
        distributions=True,
    )
    every_ms = record_every_ms or seconds * _MS_PER_SECOND
    started = time.process_time()
    recording = None
    if record_every_ms is not None or capture_sender is not None or network.links:
        recording = columns.record(request, every_ms, capture_sender=capture_sender)
        outcome = columns.recorded_outcome(request, recording)
    else:
        outcome = evaluate_columns(request)
    cpu_seconds = time.process_time() - started
    (result,) = columns.specimen_outcomes(request, outcome)
    senders = measure_senders(result, bytes_a_packet=packet_bytes(specimen.bottleneck))
    has_transport = not is_plain(specimen)
    return Simulation(
        specimen=specimen,
        senders=senders,
        transports=[measure_transport(specimen, result, [sender]) for sender in range(len(senders))]
        if has_transport
        else [],
        kinds=_kinds(network.sender_specs, specimen, result, senders),
        means=measure_specimen(specimen, senders, measure_packets(result, range(len(senders)))),
        links=[] if recording is None else _links(recording, network.links),
        seconds=seconds,
        seed=seed,
        cpu_seconds=cpu_seconds,
        digest=columns.digest(request, outcome),
        recording=None if record_every_ms is None else recording,
        record_every_ms=every_ms,
        capture=None if recording is None or capture_sender is None else recording.capture,
    )


def check_sender(network: Topology, sender: int) -> None:
    """Raises ValueError if the network has no sender with this index."""
    count = sum(each.count for each in network.sender_specs)
    if not 0 <= sender < count:
        raise ValueError(f"the sender is {sender}, but the network has senders 0 to {count - 1}")


def _links(recording: _native.NetworkRecording, names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "link": name,
            "transmitted": link.transmitted,
            "dropped": link.dropped,
            "lost": link.lost,
            "waiting": link.waiting,
        }
        for name, link in zip(names, recording.links, strict=False)
    ]


def _kinds(
    sender_specs: Sequence[SenderSpec],
    specimen: evaluation_pb2.Specimen,
    outcome: evaluation_pb2.SpecimenOutcome,
    results: Sequence[SenderMeasures],
) -> list[SenderKind]:
    numbers: dict[str, list[int]] = {}
    throughput_of: dict[str, str] = {}
    sender = 0
    for each in sender_specs:
        numbers.setdefault(each.name, []).extend(range(sender, sender + each.count))
        throughput_of[each.name] = each.throughput_measure(None)
        sender += each.count
    kinds = []
    for name, senders in numbers.items():
        own_results = [results[sender] for sender in senders]
        on = [each for each in own_results if each.on_ms > 0]
        kinds.append(
            SenderKind(
                name=name,
                senders=senders,
                throughput_of=throughput_of[name],
                throughput_mbps=mean([each.throughput_mbps for each in on]),
                throughput_equal_share_mbps=mean([each.throughput_equal_share_mbps for each in on]),
                delay_ms=mean(present(each.delay_ms for each in own_results)),
                packets_received=sum(each.packets_received for each in own_results),
                packets_lost=sum(each.packets_lost for each in own_results),
                transport=measure_transport(specimen, outcome, senders)
                if not is_plain(specimen)
                else None,
                **asdict(measure_packets(outcome, senders)),
            )
        )
    return kinds
