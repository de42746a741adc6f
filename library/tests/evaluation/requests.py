"""Requests and outcomes whose numbers identify their candidate and specimen."""

from __future__ import annotations

from array import array

from remy_proto.v1 import evaluation_pb2
from remy_simulator.columns import Slice, packed, slice_request, whole

_DURATION_MS = 1e6


def numbered_request(
    candidates: int, specimens: int, link_rates: list[float] | None = None
) -> evaluation_pb2.EvaluationRequest:
    """A packed request whose candidate i changes rule i, and whose specimen j has the key j."""
    request = evaluation_pb2.EvaluationRequest(
        tables=[{"domain_upper": 5}], duration_ms=_DURATION_MS, seed=7
    )
    for candidate in range(candidates):
        request.candidates.add().actions.changes.add(rule=candidate)
    for specimen in range(specimens):
        rate = 1.0 if link_rates is None else link_rates[specimen % len(link_rates)]
        request.specimens.add(key=specimen, link_rate_packets_per_ms=rate, senders=[{"count": 1}])
    return packed(request)


def numbered_outcome(
    request: evaluation_pb2.EvaluationRequest, *, off_by: int = 0
) -> evaluation_pb2.EvaluationOutcome:
    """The outcome of a numbered request: results hold the numbers of candidate and specimen.

    `off_by` is added to the results, so that any other value than 0 makes them wrong.
    """
    return slice_outcome(request, whole(request), off_by=off_by)


def slice_outcome(
    request: evaluation_pb2.EvaluationRequest, part: Slice, *, off_by: int = 0
) -> evaluation_pb2.EvaluationOutcome:
    """The outcome of a slice of a numbered request; see `numbered_outcome`."""
    sliced = slice_request(request, part)
    keys = list(memoryview(sliced.specimen_columns.keys).cast("Q"))
    sent = [1_000_000 + key for _ in sliced.candidates for key in keys]
    received = [
        candidate.actions.changes[0].rule + off_by for candidate in sliced.candidates for _ in keys
    ]
    one, zero = (array("d", [value] * len(sent)).tobytes() for value in (1.0, 0.0))
    return evaluation_pb2.EvaluationOutcome(
        packets_sent=sent,
        senders=evaluation_pb2.SenderColumns(
            packets_received=received,
            packets_sent=sent,
            packets_lost=[0] * len(sent),
            on_ms=one,
            share_ms=one,
            delay_sum_ms=one,
            first_on_ms=zero,
        ),
    )
