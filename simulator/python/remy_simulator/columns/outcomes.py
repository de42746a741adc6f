"""Reads outcomes: scores, senders' results by simulation, and their digest."""

from __future__ import annotations

import itertools

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
    specimens = packed(request).specimen_columns
    plain = [messages.is_plain(kind) for kind in specimens.kinds]
    kinds = specimens.kind or [0] * specimen_count(request)
    return _native.digest(
        simulations=[messages.sender_results(each) for each in results],
        transports=[
            []
            if all(plain)
            else messages.transport_results(
                _without_flows(each.transport) if plain[kind] else each.transport
            )
            for each, kind in zip(results, itertools.cycle(kinds), strict=False)
        ],
    )


def _without_flows(columns: evaluation_pb2.TransportColumns) -> evaluation_pb2.TransportColumns:
    """Returns what a plain specimen has without distributions, which do not change its digest."""
    without = evaluation_pb2.TransportColumns()
    without.CopyFrom(columns)
    without.flows[:] = [0] * len(columns.flows)
    without.ClearField("flow_packets")
    without.ClearField("completion_ms")
    return without
