"""Requests and outcomes that tell where they come from."""

from __future__ import annotations

from remy_farm.v1 import evaluation_pb2
from remy_services.evaluation.tasks import Task as Slice

_DURATION_MS = 1e6


def numbered_request(
    candidates: int, specimens: int, link_rates: list[float] | None = None
) -> evaluation_pb2.EvaluationRequest:
    """Candidates that change rules 0, 1, ... and specimens of keys 0, 1, ..., one sender each."""
    request = evaluation_pb2.EvaluationRequest(
        tables=[{"domain_upper": 5}], duration_ms=_DURATION_MS, seed=7
    )
    for candidate in range(candidates):
        request.candidates.add().actions.changes.add(rule=candidate)
    for specimen in range(specimens):
        rate = 1.0 if link_rates is None else link_rates[specimen % len(link_rates)]
        request.specimens.add(key=specimen, link_rate_packets_per_ms=rate, senders=[{"count": 1}])
    return request


def numbered_outcome(
    request: evaluation_pb2.EvaluationRequest, *, off_by: int = 0
) -> evaluation_pb2.EvaluationOutcome:
    """Results that hold the numbers of candidate and specimen; wrong ones if `off_by` is not 0."""
    return evaluation_pb2.EvaluationOutcome(
        outcomes=[
            evaluation_pb2.SpecimenOutcome(
                packets_received=[candidate.actions.changes[0].rule + off_by],
                packets_sent=[1_000_000 + specimen.key],
                packets_lost=[0],
                on_ms=[1.0],
                share_ms=[1.0],
                delay_sum_ms=[1.0],
                first_on_ms=[0.0],
            )
            for candidate in request.candidates
            for specimen in request.specimens
        ]
    )


def slice_outcome(
    whole: evaluation_pb2.EvaluationRequest, piece: Slice, *, off_by: int = 0
) -> evaluation_pb2.EvaluationOutcome:
    """The same for a slice."""
    return numbered_outcome(piece.request(whole), off_by=off_by)
