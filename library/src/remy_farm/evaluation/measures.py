"""Computes throughput, delay and scores from outcomes, for single specimens and for tables."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import remy_simulator
from remy_farm.specification import Networks
from remy_farm.specification.links import rate_in_mbps
from remy_farm.specification.models import fixed_tables
from remy_farm.specification.specimens import unloaded_paths
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator import RuleTable, _native, columns, log2
from remy_simulator.messages import (
    from_native,
    packet_bytes,
    rtt_histograms,
    sampled_rtts,
    tallies,
    transport_results,
)
from remy_simulator.objective import specimen_score

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketMeasures:
    """Loss, retransmissions, and percentiles of one or more senders.

    A percentile is the smallest value that so many percent of the values do not exceed. RTTs are
    those whose mean is the delay, and their percentiles are exact to 0.2 %. Completion times are
    those of flows, which are on periods with a number of bytes. None without values, and in
    evaluations that do not record distributions.
    """

    loss: float | None = None
    """Packets lost over packets sent; None if none was sent."""
    packets_retransmitted: int = 0
    rtt_p50_ms: float | None = None
    rtt_p95_ms: float | None = None
    rtt_p99_ms: float | None = None
    completion_p50_ms: float | None = None
    completion_p95_ms: float | None = None
    completion_p99_ms: float | None = None


#: Percentiles that PacketMeasures have.
PERCENTS: Final = (50, 95, 99)
PACKET_MEASURES: Final = tuple(field.name for field in fields(PacketMeasures))
_PERCENTILES: Final = tuple(name for name in PACKET_MEASURES if name.endswith("_ms"))


def measure_packets(
    outcome: evaluation_pb2.SpecimenOutcome, senders: Sequence[int]
) -> PacketMeasures:
    """Measures several senders together: percentiles are over the packets and flows of all."""
    return _PacketResults(outcome).measure(senders)


class _PacketResults:
    """The results of an outcome from which PacketMeasures are computed, read once."""

    def __init__(self, outcome: evaluation_pb2.SpecimenOutcome) -> None:
        self._sent, self._lost = outcome.packets_sent[:], outcome.packets_lost[:]
        # Both are empty if the outcome does not have them.
        self._results = transport_results(outcome.transport)
        self._histograms = rtt_histograms(outcome.transport)

    def measure(self, senders: Sequence[int]) -> PacketMeasures:
        sent = sum(self._sent[sender] for sender in senders)
        lost = sum(self._lost[sender] for sender in senders)
        results = [self._results[sender] for sender in senders] if self._results else []
        times = sorted(flow.time_ms for each in results for flow in each.flows)
        rtts: Counter[int] = Counter()
        for sender in senders if self._histograms else ():
            rtts.update(self._histograms[sender])
        return PacketMeasures(
            loss=lost / sent if sent else None,
            packets_retransmitted=sum(each.packets_retransmitted for each in results),
            **{f"rtt_p{percent}_ms": _histogram_percentile(rtts, percent) for percent in PERCENTS},
            **{f"completion_p{percent}_ms": percentile(times, percent) for percent in PERCENTS},
        )


def percentile(ascending: Sequence[float], percent: int) -> float | None:
    """The smallest value that `percent` of the values do not exceed; None for no values."""
    return ascending[(percent * len(ascending) - 1) // 100] if ascending else None


def _histogram_percentile(histogram: Mapping[int, int], percent: int) -> float | None:
    """The percentile of the values that a histogram counts by bucket: the middle of its bucket."""
    above = math.ceil(percent * sum(histogram.values()) / 100)
    for bucket in sorted(histogram):
        above -= histogram[bucket]
        if above <= 0:
            return _native.histogram_middle(bucket)
    return None


def measures_tree(measures: DataclassInstance) -> dict[str, Any]:
    """Measures as a JSON object, with those of PacketMeasures at the end."""
    tree = asdict(measures)
    return {name: tree[name] for name in measure_columns(type(measures))}


def measure_columns(kind: type[DataclassInstance]) -> dict[str, type]:
    """The types of measures by name, int or float, with those of PacketMeasures at the end."""
    ordered = sorted(fields(kind), key=lambda field: field.name in PACKET_MEASURES)
    return {field.name: int if field.type == "int" else float for field in ordered}


@dataclass(frozen=True, slots=True)
class SenderMeasures(PacketMeasures):
    """The results of one sender. A sender without received packets has throughput 0 and no delay.

    Packets count as throughput when they are received or, with a transport that retransmits, when
    they are delivered in order.
    """

    throughput_mbps: float
    """Throughput over the time spent on."""
    throughput_equal_share_mbps: float
    """Throughput over the time spent on, each instant divided by the number of senders then on."""
    delay_ms: float | None
    """Mean time from sending a packet to its ACK; None without ACKs."""
    packets_received: int
    packets_lost: int
    on_ms: float


@dataclass(frozen=True, slots=True)
class TransportMeasures:
    """Additional results of senders in networks with protocols, transports or queues."""

    goodput_mbps: float
    """Packets delivered in order, over the time spent on."""
    packets_in_order: int
    retransmissions: int
    timeouts: int
    marks: int
    flows_completed: int
    completion_ms_mean: float | None
    """Mean time of flows of bytes, from the first transmission to the last ACK."""
    completion_ms_median: float | None
    completion_ms_percentile_99: float | None
    """The smallest completion time that is at least that of 99 % of the flows."""
    sampled_rtt_ms: float | None
    """Mean of the sender's latest RTT sample over the packets delivered in order."""
    sampled_rtt_over_time_ms: float | None
    """Mean of the sender's latest RTT sample over those steps of 5 ms in which a new one came."""


def measure_transport(
    specimen: evaluation_pb2.Specimen,
    outcome: evaluation_pb2.SpecimenOutcome,
    senders: Sequence[int],
) -> TransportMeasures:
    """Combines the results of several senders: sums, and means of goodput and sampled RTTs."""
    all_results, all_rtts = transport_results(outcome.transport), sampled_rtts(outcome.transport)
    results = [all_results[sender] for sender in senders]
    rtts = [all_rtts[sender] for sender in senders]
    times = sorted(flow.time_ms for each in results for flow in each.flows)
    goodputs = [
        _mbps(each.packets_in_order, outcome.on_ms[sender], packet_bytes(specimen.bottleneck))
        for each, sender in zip(results, senders, strict=True)
    ]
    return TransportMeasures(
        goodput_mbps=mean(goodputs) or 0.0,
        packets_in_order=sum(each.packets_in_order for each in results),
        retransmissions=sum(each.packets_retransmitted for each in results),
        timeouts=sum(each.timeouts for each in results),
        marks=sum(each.packets_marked for each in results),
        flows_completed=len(times),
        completion_ms_mean=mean(times),
        completion_ms_median=median(times),
        completion_ms_percentile_99=percentile(times, 99),
        sampled_rtt_ms=mean(present(each.by_packets_ms for each in rtts)),
        sampled_rtt_over_time_ms=mean(present(each.over_time_ms for each in rtts)),
    )


@dataclass(frozen=True, slots=True)
class SpecimenMeasures(PacketMeasures):
    """Means over the senders of one specimen that received packets; None if there are none.

    Loss, retransmissions and percentiles are over all packets and flows.
    """

    throughput_over_link_rate: float | None
    """Equal-share throughput over the link rate. At 1 the sender used exactly its fair share."""
    delay_over_rtt: float | None
    """Mean delay over the RTT without queueing and service."""
    normalized_score_per_sender: float | None
    """log2(throughput / link rate) - log2(delay / RTT)."""
    senders: int
    senders_left_out: int
    """Number of senders that are not in the means, because they were never on or received nothing.
    """


def link_rate_mbps(specimen: evaluation_pb2.Specimen) -> float:
    """The specimen's link rate in Mbit/s."""
    return rate_in_mbps(specimen.link_rate_packets_per_ms, packet_bytes(specimen.bottleneck))


def measure_senders(
    outcome: evaluation_pb2.SpecimenOutcome, *, bytes_a_packet: float = 1500.0
) -> list[SenderMeasures]:
    """The results of each sender, in the specimen's order."""
    received = outcome.packets_received
    # Empty for plain dumbbells, where every received packet counts as throughput.
    counted = [(tally.throughput_packets, tally.delay_samples) for tally in tallies(outcome)]
    packets_of = _PacketResults(outcome)
    return [
        SenderMeasures(
            throughput_mbps=_mbps(packets, on_ms, bytes_a_packet),
            throughput_equal_share_mbps=_mbps(packets, share_ms, bytes_a_packet),
            delay_ms=delay_sum_ms / samples if samples else None,
            packets_received=received,
            packets_lost=lost,
            on_ms=on_ms,
            **asdict(packets_of.measure([sender])),
        )
        for sender, (packets, samples), received, lost, on_ms, share_ms, delay_sum_ms in zip(
            range(len(received)),
            counted or zip(received, received, strict=True),
            outcome.packets_received,
            outcome.packets_lost,
            outcome.on_ms,
            outcome.share_ms,
            outcome.delay_sum_ms,
            strict=True,
        )
    ]


def measure_specimen(
    specimen: evaluation_pb2.Specimen,
    senders: Sequence[SenderMeasures],
    packets: PacketMeasures | None = None,
) -> SpecimenMeasures:
    """The means over senders that the papers plot, as the reference tool computes them.

    `packets` are the measures of all senders together.
    """
    throughputs: list[float] = []
    delays: list[float] = []
    # Without sender groups in the specimen, all senders have the same path.
    paths = unloaded_paths(specimen) or [(link_rate_mbps(specimen), specimen.rtt_ms)] * len(senders)
    for sender, (link_mbps, rtt_ms) in zip(senders, paths, strict=True):
        if sender.delay_ms is not None and sender.throughput_equal_share_mbps > 0:
            throughputs.append(sender.throughput_equal_share_mbps / link_mbps)
            delays.append(sender.delay_ms / (rtt_ms or specimen.rtt_ms))
    scores = [
        log2(throughput) - log2(delay)
        for throughput, delay in zip(throughputs, delays, strict=True)
    ]
    return SpecimenMeasures(
        throughput_over_link_rate=mean(throughputs),
        delay_over_rtt=mean(delays),
        normalized_score_per_sender=mean(scores),
        senders=len(senders),
        senders_left_out=len(senders) - len(throughputs),
        **asdict(packets or PacketMeasures()),
    )


def mean(values: Sequence[float]) -> float | None:
    """The mean; None for no values."""
    return math.fsum(values) / len(values) if values else None


def standard_error(values: Sequence[float]) -> float | None:
    """The standard error of the mean; None for fewer than two values."""
    if len(values) < 2:
        return None
    centre = math.fsum(values) / len(values)
    squares = math.fsum((value - centre) ** 2 for value in values)
    return math.sqrt(squares / (len(values) - 1) / len(values))


def median(values: Sequence[float]) -> float | None:
    """The median; None for no values."""
    return statistics.median(values) if values else None


def _mbps(packets: int, time_ms: float, bytes_a_packet: float) -> float:
    return rate_in_mbps(packets / time_ms, bytes_a_packet) if time_ms > 0 else 0.0


_MS_PER_SECOND = 1000.0

# Purposes of random streams, so that simulations and the drawing of networks share no draws.
_SIMULATION = 0
_NETWORK = 1

Evaluate = Callable[[evaluation_pb2.EvaluationRequest], evaluation_pb2.EvaluationOutcome]


@dataclass(frozen=True, slots=True)
class SpecimenResult:
    """The results of a table on one specimen."""

    specimen: evaluation_pb2.Specimen
    score: float | None
    """The specification's objective; None if no sender could be scored."""
    measures: SpecimenMeasures


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its standard error, which is None for fewer than two values."""

    mean: float
    standard_error: float | None
    count: int


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean score, and medians of throughput and delay, over several specimens."""

    score: Estimate | None
    """None if no specimen could be scored."""
    specimens: int
    throughput_over_link_rate: float | None
    """Median over the specimens in which packets were received; None if there are none."""
    delay_over_rtt: float | None
    """Median over the specimens in which packets were received; None if there are none."""
    packets: PacketMeasures
    """Mean loss, all retransmissions, and medians of the specimens' percentiles."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The results of one table on a number of specimens, in the order of their drawing."""

    results: Sequence[SpecimenResult]
    digest: str
    """Digest of the exact results of every sender."""
    packets_received: int
    rule_uses: Sequence[int]
    """Look-ups of each rule, over all specimens."""

    def summary(self) -> Summary:
        """The summary of all specimens."""
        return summarize(self.results)

    def by_senders(self) -> dict[int, Summary]:
        """A summary of the specimens with each number of senders, in ascending order."""
        groups: dict[int, list[SpecimenResult]] = {}
        for result in self.results:
            groups.setdefault(result.measures.senders, []).append(result)
        return {senders: summarize(groups[senders]) for senders in sorted(groups)}


def summarize(results: Sequence[SpecimenResult]) -> Summary:
    """Summarizes the results on several specimens."""
    return Summary(
        score=estimate([result.score for result in results]),
        specimens=len(results),
        throughput_over_link_rate=median(
            present(result.measures.throughput_over_link_rate for result in results)
        ),
        delay_over_rtt=median(present(result.measures.delay_over_rtt for result in results)),
        packets=_summarize_packets([result.measures for result in results]),
    )


def packets_row(packets: PacketMeasures) -> dict[str, Any]:
    """The packet measures of a summary by name, with the statistic that they are."""
    return {
        "loss_mean": packets.loss,
        "packets_retransmitted": packets.packets_retransmitted,
        **{f"{name}_median": getattr(packets, name) for name in _PERCENTILES},
    }


def _summarize_packets(measures: Sequence[SpecimenMeasures]) -> PacketMeasures:
    return PacketMeasures(
        loss=mean(present(each.loss for each in measures)),
        packets_retransmitted=sum(each.packets_retransmitted for each in measures),
        **{
            name: median(present(getattr(each, name) for each in measures)) for name in _PERCENTILES
        },
    )


def evaluation_request(
    spec: spec_pb2.DesignSpec,
    table: RuleTable | None,
    *,
    seed: int,
    specimens: int,
    seconds: float,
    senders: evaluation_pb2.SenderGroup | None = None,
    companions: Sequence[RuleTable] = (),
) -> evaluation_pb2.EvaluationRequest:
    """Builds a request for a table on the first `specimens` networks that `seed` draws.

    The networks are drawn at random, not stratified. `companions` are the other tables designed
    together with the table, in the specification's order. `senders` is merged into every sender
    group: it sets a protocol that all run instead of a table, or their transport.
    """
    drawn = Networks(spec).draw(seed=remy_simulator.mix(seed, _NETWORK), count=specimens)
    if senders is not None:
        for group in (group for kind in drawn.kinds for group in kind.senders):
            group.MergeFrom(senders)
    return evaluation_pb2.EvaluationRequest(
        tables=[
            *(from_native(each) for each in (table, *companions) if each is not None),
            *fixed_tables(spec),
        ],
        candidates=[evaluation_pb2.Candidate()],
        specimen_columns=drawn,
        duration_ms=seconds * _MS_PER_SECOND,
        seed=remy_simulator.mix(seed, _SIMULATION),
    )


def by_specimen(
    request: evaluation_pb2.EvaluationRequest, outcome: evaluation_pb2.EvaluationOutcome
) -> Iterator[tuple[evaluation_pb2.Specimen, evaluation_pb2.SpecimenOutcome]]:
    """The specimens of a packed request, each with the outcome of the last candidate."""
    specimens = columns.unpack_specimens(request.specimen_columns)
    results = columns.specimen_outcomes(request, outcome)[-len(specimens) :]
    return zip(specimens, results, strict=True)


def evaluate_table(
    spec: spec_pb2.DesignSpec,
    table: RuleTable | None,
    *,
    seed: int,
    specimens: int,
    evaluate: Evaluate,
    senders: evaluation_pb2.SenderGroup | None = None,
    companions: Sequence[RuleTable] = (),
    distributions: bool = False,
) -> Trial:
    """Evaluates a table on `specimens` networks that `seed` draws from the specification.

    Equal seeds give the same networks and the same random numbers in them for every table, so that
    two trials can be compared specimen by specimen. For `senders` see `evaluation_request`. Without
    `distributions`, the measures have no percentiles.
    """
    seconds = spec.search.simulated_seconds
    request = evaluation_request(
        spec,
        table,
        seed=seed,
        specimens=specimens,
        seconds=seconds,
        senders=senders,
        companions=companions,
    )
    request.recording = evaluation_pb2.RECORDING_USES
    request.distributions = distributions
    outcome = evaluate(request)
    return Trial(
        results=[
            SpecimenResult(
                specimen=specimen,
                score=specimen_score(spec.objective, specimen, result, request.duration_ms),
                measures=_measure_outcome(specimen, result),
            )
            for specimen, result in by_specimen(request, outcome)
        ],
        digest=columns.digest(request, outcome),
        packets_received=sum(outcome.senders.packets_received),
        rule_uses=outcome.rule_uses[:],
    )


def _measure_outcome(
    specimen: evaluation_pb2.Specimen, outcome: evaluation_pb2.SpecimenOutcome
) -> SpecimenMeasures:
    senders = measure_senders(outcome)
    return measure_specimen(specimen, senders, measure_packets(outcome, range(len(senders))))


def estimate(values: Sequence[float | None]) -> Estimate | None:
    """The mean of the values that are not None, with its standard error; None if all are None."""
    known = present(values)
    centre = mean(known)
    if centre is None:
        return None
    return Estimate(centre, standard_error(known), len(known))


def present(values: Iterable[float | None]) -> list[float]:
    """The values that are not None."""
    return [value for value in values if value is not None]
