"""The evaluator: a pure function from EvaluationRequest to EvaluationOutcome.

It can be retried, duplicated and split by candidate and specimen: the outcome of one pair depends
on nothing but the tables, the candidate, the specimen, the duration and the seed, and is the same
bits on every machine and with any number of threads.
"""

from collections.abc import Iterable, Sequence

from remy_farm.v1 import evaluation_pb2, rule_table_pb2
from remy_simulator import _native, messages

_RECORDINGS = {
    evaluation_pb2.RECORDING_UNSPECIFIED: _native.Recording.NOTHING,
    evaluation_pb2.RECORDING_USES: _native.Recording.USES,
    evaluation_pb2.RECORDING_MEMORY: _native.Recording.MEMORY,
}


class InvalidRequest(ValueError):
    """An evaluation request that makes no sense, in one sentence."""


def evaluate(
    request: evaluation_pb2.EvaluationRequest,
    threads: int = 1,
    tables: Sequence[_native.RuleTable] | None = None,
) -> evaluation_pb2.EvaluationOutcome:
    """Simulates every candidate on every specimen, on `threads` threads, without the GIL.

    `tables` takes the place of the request's, for those who have converted them before. Raises
    InvalidRequest.
    """
    if request.recording not in _RECORDINGS:
        raise InvalidRequest(f"recording is {request.recording}, which is not one of 0 to 2")
    try:
        outcomes = _native.evaluate(
            native_tables(request.tables) if tables is None else tables,
            [messages.native_candidate(candidate) for candidate in request.candidates],
            [messages.native_specimen(specimen) for specimen in request.specimens],
            request.duration_ms,
            request.seed,
            _RECORDINGS[request.recording],
            max(threads, 1),
        )
    except ValueError as problem:
        raise InvalidRequest(str(problem)) from problem
    return evaluation_pb2.EvaluationOutcome(
        outcomes=[messages.outcome_message(outcome) for outcome in outcomes]
    )


def native_tables(tables: Iterable[rule_table_pb2.RuleTable]) -> list[_native.RuleTable]:
    """Tables as the simulator has them. Raises InvalidTable, which is a ValueError."""
    return [messages.to_native(table) for table in tables]


def digest(outcome: evaluation_pb2.EvaluationOutcome) -> str:
    """16 hexadecimal digits that stand for every sender's exact results, in order."""
    return _native.digest([messages.native_outcome(each) for each in outcome.outcomes])
