"""Evaluations as objects, a message a simulation, for callers that do not take columns yet."""

from collections.abc import Sequence

from remy_farm.v1 import evaluation_pb2
from remy_simulator import _native, messages
from remy_simulator.columns import InvalidRequest, native_tables

_RECORDINGS = {
    evaluation_pb2.RECORDING_UNSPECIFIED: _native.Recording.NOTHING,
    evaluation_pb2.RECORDING_USES: _native.Recording.USES,
    evaluation_pb2.RECORDING_MEMORY: _native.Recording.MEMORY,
}


def evaluate(
    request: evaluation_pb2.EvaluationRequest,
    threads: int = 1,
    tables: Sequence[_native.RuleTable] | None = None,
    cancellation: _native.Cancellation | None = None,
    packet_limit: int | None = None,
) -> evaluation_pb2.EvaluationOutcome:
    """Simulates every candidate on every specimen, on `threads` threads, without the GIL.

    `tables` takes the place of the request's, for those who have converted them before. Raises
    InvalidRequest and Cancelled.
    """
    if request.recording not in _RECORDINGS:
        raise InvalidRequest(f"recording is {request.recording}, which is not one of 0 to 2")
    try:
        native = native_tables(request.tables) if tables is None else tables
        outcomes = _native.evaluate(
            [_native.CompiledTable(table) for table in native],
            [messages.native_candidate(candidate) for candidate in request.candidates],
            [messages.native_specimen(specimen) for specimen in request.specimens],
            request.duration_ms,
            request.seed,
            _RECORDINGS[request.recording],
            max(threads, 1),
            cancellation,
            packet_limit,
        )
    except ValueError as problem:
        raise InvalidRequest(str(problem)) from problem
    return evaluation_pb2.EvaluationOutcome(
        outcomes=[messages.outcome_message(outcome) for outcome in outcomes]
    )


def digest(outcome: evaluation_pb2.EvaluationOutcome) -> str:
    """16 hexadecimal digits that stand for every sender's exact results, in order."""
    return _native.digest([messages.native_outcome(each) for each in outcome.outcomes])
