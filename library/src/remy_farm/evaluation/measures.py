"""Measures: throughput, delay and scores of one outcome, and of a table on many specimens."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import remy_simulator
from remy_farm.specification import Networks
from remy_farm.specification.links import rate_in_mbps
from remy_farm.specification.models import fixed_tables
from remy_farm.specification.specimens import unloaded_paths
from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator import RuleTable, columns, log2
from remy_simulator.messages import (
    from_native,
    packet_bytes,
    sampled_rtts,
    tallies,
    transport_results,
)
from remy_simulator.objective import specimen_score

# The designer sees only its objective; these are the quantities of the papers' plots, computed from
# the counts and sums that an evaluation returns.


@dataclass(frozen=True, slots=True)
class SenderMeasures:
    """What one sender got. A sender that received nothing has throughput 0 and no delay.

    Packets count as throughput when they are received, on a body that repeats what is lost when
    they are handed on in order.
    """

    throughput_mbps: float
    """Packets over the time spent on."""
    throughput_equal_share_mbps: float
    """Packets over the time spent on, each instant divided by the senders then on."""
    delay_ms: float | None
    """Mean over the ACKs of their time minus that of sending."""
    packets_received: int
    packets_lost: int
    on_ms: float


@dataclass(frozen=True, slots=True)
class TransportMeasures:
    """What a sender came to beside where there are protocols, bodies or queues; or several did."""

    goodput_mbps: float
    """Packets handed on in order over the time spent on."""
    packets_in_order: int
    retransmissions: int
    timeouts: int
    marks: int
    flows_completed: int
    completion_ms_mean: float | None
    """Of flows by bytes, from the first sending to the last ACK."""
    completion_ms_median: float | None
    completion_ms_percentile_99: float | None
    """The least that 99 % do not exceed."""
    sampled_rtt_ms: float | None
    """Mean over the packets handed on in order of the latest RTT that the sender had sampled."""
    sampled_rtt_over_time_ms: float | None
    """Mean of that over the steps of 5 ms that brought news."""


def measure_transport(
    specimen: evaluation_pb2.Specimen,
    outcome: evaluation_pb2.SpecimenOutcome,
    senders: Sequence[int],
) -> TransportMeasures:
    """Of these senders together: sums, and means of goodputs and sampled RTTs."""
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
        retransmissions=sum(each.packets_repeated for each in results),
        timeouts=sum(each.timeouts for each in results),
        marks=sum(each.packets_marked for each in results),
        flows_completed=len(times),
        completion_ms_mean=mean(times),
        completion_ms_median=median(times),
        completion_ms_percentile_99=times[(99 * len(times) - 1) // 100] if times else None,
        sampled_rtt_ms=mean(present(each.by_packets_ms for each in rtts)),
        sampled_rtt_over_time_ms=mean(present(each.over_time_ms for each in rtts)),
    )


@dataclass(frozen=True, slots=True)
class SpecimenMeasures:
    """Means over the senders of one specimen that received packets; None if none did."""

    throughput_over_link_rate: float | None
    """Equal-share throughput over the link rate: 1 is the sender's fair share, fully used."""
    delay_over_rtt: float | None
    """Mean delay over the RTT without queueing and service."""
    normalized_score_per_sender: float | None
    """log2(throughput / link rate) - log2(delay / RTT)."""
    senders: int
    senders_left_out: int
    """Senders that were never on or received nothing; the means are over the others."""


def link_rate_mbps(specimen: evaluation_pb2.Specimen) -> float:
    """The specimen's link rate, Mbit/s."""
    return rate_in_mbps(specimen.link_rate_packets_per_ms, packet_bytes(specimen.bottleneck))


def measure_senders(
    outcome: evaluation_pb2.SpecimenOutcome, *, bytes_a_packet: float = 1500.0
) -> list[SenderMeasures]:
    """One entry a sender, in the specimen's order."""
    received = outcome.packets_received
    counted = [(tally.throughput_packets, tally.delay_samples) for tally in tallies(outcome)]
    return [
        SenderMeasures(
            throughput_mbps=_mbps(packets, on_ms, bytes_a_packet),
            throughput_equal_share_mbps=_mbps(packets, share_ms, bytes_a_packet),
            delay_ms=delay_sum_ms / samples if samples else None,
            packets_received=received,
            packets_lost=lost,
            on_ms=on_ms,
        )
        for (packets, samples), received, lost, on_ms, share_ms, delay_sum_ms in zip(
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
    specimen: evaluation_pb2.Specimen, senders: Sequence[SenderMeasures]
) -> SpecimenMeasures:
    """The means over senders that the papers plot, as in the reference tool's output."""
    throughputs: list[float] = []
    delays: list[float] = []
    # Only groups with routes of their own, and links, tell paths apart.
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
    )


def mean(values: Sequence[float]) -> float | None:
    """The mean; None of nothing."""
    return math.fsum(values) / len(values) if values else None


def standard_error(values: Sequence[float]) -> float | None:
    """Standard error of the mean; None of fewer than two values."""
    if len(values) < 2:
        return None
    centre = math.fsum(values) / len(values)
    squares = math.fsum((value - centre) ** 2 for value in values)
    return math.sqrt(squares / (len(values) - 1) / len(values))


def median(values: Sequence[float]) -> float | None:
    """The median; None of nothing."""
    return statistics.median(values) if values else None


def _mbps(packets: int, time_ms: float, bytes_a_packet: float) -> float:
    return rate_in_mbps(packets / time_ms, bytes_a_packet) if time_ms > 0 else 0.0


_MS_PER_SECOND = 1000.0

# The last element of a stream's path: the simulations must not share draws with the model.
_SIMULATION = 0
_NETWORK = 1

Evaluate = Callable[[evaluation_pb2.EvaluationRequest], evaluation_pb2.EvaluationOutcome]


@dataclass(frozen=True, slots=True)
class SpecimenResult:
    """What a table did on one specimen."""

    specimen: evaluation_pb2.Specimen
    score: float | None
    """The specification's objective; None if no sender could be scored."""
    measures: SpecimenMeasures


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its standard error (None of fewer than two values)."""

    mean: float
    standard_error: float | None
    count: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What some specimens have in common."""

    score: Estimate | None
    """None if no specimen could be scored."""
    specimens: int
    throughput_over_link_rate: float | None
    """Median over the specimens in which packets were received."""
    delay_over_rtt: float | None
    """Likewise."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One table on a number of specimens, in the order they were drawn."""

    results: Sequence[SpecimenResult]
    digest: str
    """Of every sender's exact results."""
    packets_received: int
    rule_uses: Sequence[int]
    """Look-ups by rule, over all specimens."""

    def summary(self) -> Summary:
        """Of all specimens."""
        return summarize(self.results)

    def by_senders(self) -> dict[int, Summary]:
        """Of the specimens with each number of senders, by increasing number."""
        groups: dict[int, list[SpecimenResult]] = {}
        for result in self.results:
            groups.setdefault(result.measures.senders, []).append(result)
        return {senders: summarize(groups[senders]) for senders in sorted(groups)}


def summarize(results: Sequence[SpecimenResult]) -> Summary:
    """Mean score and medians over specimens."""
    return Summary(
        score=estimate([result.score for result in results]),
        specimens=len(results),
        throughput_over_link_rate=median(
            present(result.measures.throughput_over_link_rate for result in results)
        ),
        delay_over_rtt=median(present(result.measures.delay_over_rtt for result in results)),
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
    """The table on the first `specimens` networks that `seed` draws: random, not stratified.

    `companions` are the other tables that were designed with it, in the specification's order.
    `senders` has what they all run in place of a table, or what carries it.
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
    """What the last candidate of a packed request did on each of its specimens."""
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
) -> Trial:
    """Simulates the table on `specimens` networks that `seed` draws from the specification, or
    what `senders` has in its place.

    Equal seeds give equal networks and equal random numbers in them, whatever the table, so that
    two trials compare specimen by specimen.
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
    outcome = evaluate(request)
    return Trial(
        results=[
            SpecimenResult(
                specimen=specimen,
                score=specimen_score(spec.objective, specimen, result, request.duration_ms),
                measures=measure_specimen(specimen, measure_senders(result)),
            )
            for specimen, result in by_specimen(request, outcome)
        ],
        digest=columns.digest(request, outcome),
        packets_received=sum(outcome.senders.packets_received),
        rule_uses=outcome.rule_uses[:],
    )


def estimate(values: Sequence[float | None]) -> Estimate | None:
    """The mean of the values that are not None, with its standard error."""
    known = present(values)
    centre = mean(known)
    if centre is None:
        return None
    return Estimate(centre, standard_error(known), len(known))


def present(values: Iterable[float | None]) -> list[float]:
    """The values that are not None."""
    return [value for value in values if value is not None]
