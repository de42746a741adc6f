"""Whether an outcome answers a request: the right number of results, of senders and of rules."""

from __future__ import annotations

from remy_farm.v1 import evaluation_pb2
from remy_services.designer.errors import OutcomeError


def check_outcome(
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
) -> None:
    """Raises OutcomeError unless `outcome` has the shape that `request` asks for."""
    rules = sum(node.HasField("action") for node in request.tables[0].nodes)
    expected = len(request.candidates) * len(request.specimens)
    if len(outcome.outcomes) != expected:
        raise OutcomeError(
            f"the outcome holds {len(outcome.outcomes)} results; the request asks for "
            f"{len(request.candidates)} candidates on {len(request.specimens)} specimens"
        )
    senders = [sum(group.count for group in specimen.senders) for specimen in request.specimens]
    for number, result in enumerate(outcome.outcomes):
        _check_senders(senders[number % len(senders)], result, number)
        if request.recording and len(result.rule_uses) != rules:
            raise OutcomeError(
                f"result {number} counts the uses of {len(result.rule_uses)} rules; "
                f"the table has {rules}"
            )


def _check_senders(senders: int, result: evaluation_pb2.SpecimenOutcome, number: int) -> None:
    lengths = (
        len(result.packets_received),
        len(result.packets_sent),
        len(result.packets_lost),
        len(result.on_ms),
        len(result.share_ms),
        len(result.delay_sum_ms),
        len(result.first_on_ms),
    )
    if any(length != senders for length in lengths):
        raise OutcomeError(
            f"result {number} does not hold one entry for each of its specimen's {senders} senders"
        )
