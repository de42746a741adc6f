"""Reads outcomes: scores, senders' results by simulation, and their digest."""

from __future__ import annotations

from remy_proto.v1 import evaluation_pb2
from remy_simulator import _native, messages
from remy_simulator.columns.layout import numbers
from remy_simulator.columns.senders import TransportRows
from remy_simulator.columns.specimens import packed, sender_counts, specimen_count
from remy_simulator.messages import SENDER_COUNTS, SENDER_TIMES


def score_rows(
    request: evaluation_pb2.EvaluationRequest, outcome: evaluation_pb2.EvaluationOutcome
) -> list[list[float | None]]:
    """Returns the scores by candidate (first index) and specimen; None if no sender was scored."""
    scores = [None if score != score else score for score in numbers(outcome.scores)]
    width = specimen_count(request)
    return [scores[row * width : (row + 1) * width] for row in range(len(request.candidates))]


def specimen_outcomes(
    request: evaluation_pb2.EvaluationRequest, outcome: evaluation_pb2.EvaluationOutcome
) -> list[evaluation_pb2.SpecimenOutcome]:
    """Returns the senders' results by simulation, without recordings of rules."""
    counts = sender_counts(packed(request).specimen_columns) * len(request.candidates)
    columns = outcome.senders
    fields = {name: getattr(columns, name) for name in SENDER_COUNTS}
    fields |= {name: numbers(getattr(columns, name)) for name in SENDER_TIMES}
    transport = TransportRows(columns.transport)
    results = []
    first = 0
    for count in counts:
        place = slice(first, first + count)
        results.append(
            evaluation_pb2.SpecimenOutcome(
                **{name: values[place] for name, values in fields.items()}
            )
        )
        if columns.HasField("transport"):
            transport.append_to(results[-1].transport, first, first + count)
        first += count
    return results


def digest(
    request: evaluation_pb2.EvaluationRequest, outcome: evaluation_pb2.EvaluationOutcome
) -> str:
    """Returns a digest, 16 hexadecimal digits, of the exact results of all senders in order."""
    results = specimen_outcomes(request, outcome)
    # Distributions do not change the digest of plain specimens.
    all_plain = all(map(messages.is_plain, packed(request).specimen_columns.kinds))
    return _native.digest(
        simulations=[messages.sender_results(each) for each in results],
        transports=[
            [] if all_plain else messages.transport_results(each.transport) for each in results
        ],
    )
