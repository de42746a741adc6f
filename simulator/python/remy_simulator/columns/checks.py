"""Checks that an outcome from another process can be the result of its request."""

from __future__ import annotations

import itertools
import math

from remy_proto.v1 import evaluation_pb2
from remy_simulator import _native, messages
from remy_simulator.columns.layout import NUMBER_BYTES, numbers
from remy_simulator.columns.recordings import COUNTS_USES, RECORDS_MEMORY, rule_count
from remy_simulator.columns.senders import TRANSPORT_COUNTS, TRANSPORT_MEANS
from remy_simulator.columns.slices import Slice, whole
from remy_simulator.columns.specimens import sender_counts
from remy_simulator.messages import SENDER_COUNTS, SENDER_TIMES

# Sums of times may exceed their bounds by rounding errors.
_TOLERANCE = 1 + 1e-9
# A sanity bound on sums of delays, which the simulator itself does not bound.
_LARGEST_DELAY_MS = 1e15


class ImpossibleOutcome(ValueError):
    """An outcome cannot be the result of its request. The message is one sentence."""


def check(
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
    rules: int | None = None,
    part: Slice | None = None,
) -> None:
    """Raises ImpossibleOutcome if `outcome` cannot be that of a slice of a packed request.

    `rules` is the number of rules of the request's first table, if it is known already. `part` is
    the slice; the whole request by default.
    """
    part = part or whole(request)
    if rules is None:
        rules = rule_count(request.tables[0]) if request.tables else 0
    if len(outcome.packets_sent) != part.simulations:
        raise ImpossibleOutcome(
            f"the outcome counts the packets of {len(outcome.packets_sent)} simulations; the "
            f"request asks for {len(part.candidates)} candidates on {len(part.specimens)} specimens"
        )
    if request.HasField("objective"):
        _check_scores(outcome, part)
    else:
        _check_senders(request, outcome, part)
    _check_recording(request.recording, outcome, rules, part)


def _check_scores(outcome: evaluation_pb2.EvaluationOutcome, part: Slice) -> None:
    if len(outcome.scores) != part.simulations * NUMBER_BYTES or outcome.HasField("senders"):
        raise ImpossibleOutcome(
            f"the outcome holds {len(outcome.scores)} bytes of scores where {part.simulations} "
            "simulations were to be scored"
        )
    scores = numbers(outcome.scores)
    if any(map(math.isinf, scores)):
        number, score = next(each for each in enumerate(scores) if math.isinf(each[1]))
        raise ImpossibleOutcome(
            f"candidate {part.candidates[number // len(part.specimens)]} scored {score} on "
            f"specimen {part.specimens[number % len(part.specimens)]}; scores are finite"
        )


def _check_senders(
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
    part: Slice,
) -> None:
    columns = request.specimen_columns
    counts = sender_counts(columns)[part.specimens.start : part.specimens.stop]
    senders = sum(counts) * len(part.candidates)
    if outcome.scores or not outcome.HasField("senders"):
        raise ImpossibleOutcome(
            "the outcome holds scores, but the request asks for senders' results"
        )
    counted = {name: getattr(outcome.senders, name)[:] for name in SENDER_COUNTS}
    timed = {name: getattr(outcome.senders, name) for name in SENDER_TIMES}
    if any(len(values) != senders for values in counted.values()) or any(
        len(values) != senders * NUMBER_BYTES for values in timed.values()
    ):
        raise ImpossibleOutcome(
            f"the outcome does not hold one entry for each of its simulations' {senders} senders"
        )
    sent = counted["packets_sent"]
    first = 0
    for number, packets in enumerate(outcome.packets_sent):
        end = first + counts[number % len(counts)]
        if sum(sent[first:end]) != packets:
            raise ImpossibleOutcome(
                f"simulation {number} of the outcome sent {packets} packets, and its senders "
                f"{sum(sent[first:end])}"
            )
        first = end
    if any(got > out for got, out in zip(counted["packets_received"], sent, strict=True)):
        raise ImpossibleOutcome("the outcome has more packets received than sent")
    if any(gone > out for gone, out in zip(counted["packets_lost"], sent, strict=True)):
        raise ImpossibleOutcome("the outcome has more packets lost than sent")
    _check_transport(request, outcome.senders, senders)
    longest_ms = request.duration_ms * _TOLERANCE
    times = {name: numbers(values) for name, values in timed.items()}
    for name, values in times.items():
        longest = _LARGEST_DELAY_MS if name == "delay_sum_ms" else longest_ms
        if not all(0.0 <= value <= longest for value in values):
            raise ImpossibleOutcome(
                "the outcome has a time that is not between 0 and what is possible"
            )
    if any(
        share_ms > on_ms * _TOLERANCE
        for share_ms, on_ms in zip(times["share_ms"], times["on_ms"], strict=True)
    ):
        raise ImpossibleOutcome(
            "the outcome has a sender with a larger share of the time than it was on"
        )


def _check_transport(
    request: evaluation_pb2.EvaluationRequest,
    columns: evaluation_pb2.SenderColumns,
    senders: int,
) -> None:
    is_expected = messages.has_transports(request.specimen_columns.kinds, request)
    if columns.HasField("transport") != is_expected:
        raise ImpossibleOutcome(
            "the outcome lacks the transport columns that the request needs"
            if is_expected
            else "the outcome has transport columns, but all specimens of the request are plain"
        )
    if not is_expected:
        return
    transport = columns.transport
    counts = [getattr(transport, name) for name in TRANSPORT_COUNTS]
    means = [getattr(transport, name) for name in TRANSPORT_MEANS]
    flows = sum(transport.flows)
    if (
        any(len(values) != senders for values in counts)
        or any(len(values) != senders * NUMBER_BYTES for values in means)
        or len(transport.flow_packets) != flows
        or len(transport.completion_ms) != flows * NUMBER_BYTES
    ):
        raise ImpossibleOutcome(
            f"the outcome does not hold one entry for each of its {senders} senders and their flows"
        )
    for values in (transport.packets_in_order, transport.throughput_packets):
        if any(got > out for got, out in zip(values, columns.packets_sent, strict=True)):
            raise ImpossibleOutcome("the outcome has more packets delivered in order than sent")
    if any(
        again > out
        for again, out in zip(transport.packets_retransmitted, columns.packets_sent, strict=True)
    ):
        raise ImpossibleOutcome("the outcome has more packets retransmitted than sent")
    _check_histograms(request, columns, senders)
    longest_ms = request.duration_ms * _TOLERANCE
    if not all(0.0 <= value <= longest_ms for value in numbers(transport.completion_ms)):
        raise ImpossibleOutcome("the outcome has a flow that took longer than was simulated")
    if not all(0.0 <= rtt_ms <= _LARGEST_DELAY_MS for each in means for rtt_ms in numbers(each)):
        raise ImpossibleOutcome("the outcome has an RTT that is not between 0 and what is possible")


def _check_histograms(
    request: evaluation_pb2.EvaluationRequest, columns: evaluation_pb2.SenderColumns, senders: int
) -> None:
    transport = columns.transport
    sizes, counts = transport.rtt_histogram_sizes, transport.rtt_histogram_counts
    if (
        len(sizes) != (senders if request.distributions else 0)
        or sum(sizes) != len(counts)
        or len(transport.rtt_histogram_buckets) != len(counts)
    ):
        raise ImpossibleOutcome("the outcome's histograms of RTTs are not those of its senders")
    buckets = iter(zip(transport.rtt_histogram_buckets, counts, strict=True))
    for size, samples in zip(sizes, transport.delay_samples, strict=False):
        own = list(itertools.islice(buckets, size))
        if (
            sum(count for _, count in own) != samples
            or any(after <= before for (before, _), (after, _) in itertools.pairwise(own))
            or (own and not 0 < _native.histogram_middle(own[-1][0]) <= _LARGEST_DELAY_MS)
        ):
            raise ImpossibleOutcome(
                "the outcome has a histogram of RTTs that does not count each sample once"
            )


def _check_recording(
    recording: evaluation_pb2.Recording,
    outcome: evaluation_pb2.EvaluationOutcome,
    rules: int,
    part: Slice,
) -> None:
    counted = rules if recording in COUNTS_USES else 0
    if len(outcome.rule_uses) != counted:
        raise ImpossibleOutcome(
            f"the outcome counts the uses of {len(outcome.rule_uses)} rules, not of {counted}"
        )
    masked = recording == evaluation_pb2.RECORDING_USED
    width = (rules + 7) // 8
    if len(outcome.used_rules) != (len(part.specimens) * width if masked else 0):
        raise ImpossibleOutcome(
            f"the outcome has {len(outcome.used_rules)} bytes of used rules for "
            f"{len(part.specimens)} specimens and a table of {rules} rules"
        )
    if masked and rules % 8 and max(outcome.used_rules[width - 1 :: width], default=0) >> rules % 8:
        raise ImpossibleOutcome(f"the outcome names used rules beyond the table's {rules}")
    steps, counts = outcome.memory.places[:], outcome.memory.counts[:]
    if recording not in RECORDS_MEMORY:
        if outcome.HasField("memory"):
            raise ImpossibleOutcome(
                "the outcome contains memory, which the request does not record"
            )
        return
    if (
        len(steps) != len(counts)
        or any(step == 0 for step in steps[1:])
        or any(count == 0 for count in counts)
        or (steps and sum(steps) >= rules * messages.AXES * _native.MEMORY_BUCKETS)
    ):
        raise ImpossibleOutcome(
            "the outcome's memory is off its scale: an index is out of range or a count is 0"
        )
