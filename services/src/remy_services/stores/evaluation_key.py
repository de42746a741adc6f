"""Names of evaluations: a hash of everything that an outcome is a function of."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

from remy_farm.v1 import evaluation_pb2, rule_table_pb2

if TYPE_CHECKING:
    from hashlib import _Hash

# Changes whenever equal parts are to have another key.
_PURPOSE = b"remy-farm evaluation 1"


def table_digest(tables: Sequence[rule_table_pb2.RuleTable]) -> bytes:
    """SHA-256 of a request's tables, in their order."""
    return _hash(_PURPOSE, *(_encoded(table) for table in tables)).digest()


def evaluation_key(
    *,
    simulator_version: str,
    table_digest: bytes,
    candidate: evaluation_pb2.Candidate,
    specimen: evaluation_pb2.Specimen,
    duration_ms: float,
    seed: int,
    recording: evaluation_pb2.Recording,
) -> bytes:
    """SHA-256 that names the outcome of one candidate on one specimen.

    Two evaluations with one key have one outcome, whatever else their requests held.
    """
    common = _common(simulator_version, table_digest, duration_ms, seed, recording)
    return _with(_with(common, _encoded(candidate)), _encoded(specimen)).digest()


def request_keys(simulator_version: str, request: evaluation_pb2.EvaluationRequest) -> list[bytes]:
    """The keys of all outcomes of a request, in their order: candidate-major."""
    common = _common(
        simulator_version,
        table_digest(request.tables),
        request.duration_ms,
        request.seed,
        request.recording,
    )
    specimens = [_encoded(specimen) for specimen in request.specimens]
    return [
        _with(of_candidate, specimen).digest()
        for of_candidate in (_with(common, _encoded(each)) for each in request.candidates)
        for specimen in specimens
    ]


def _common(
    simulator_version: str,
    tables: bytes,
    duration_ms: float,
    seed: int,
    recording: evaluation_pb2.Recording,
) -> _Hash:
    return _hash(
        _PURPOSE,
        simulator_version.encode(),
        tables,
        struct.pack(">dQi", duration_ms, seed, recording),
    )


def _encoded(
    message: rule_table_pb2.RuleTable | evaluation_pb2.Candidate | evaluation_pb2.Specimen,
) -> bytes:
    return message.SerializeToString(deterministic=True)


def _hash(*parts: bytes) -> _Hash:
    """Of the parts and their lengths, so that no two sequences of parts run together."""
    state = hashlib.sha256()
    for part in parts:
        state = _with(state, part)
    return state


def _with(state: _Hash, part: bytes) -> _Hash:
    longer = state.copy()
    longer.update(struct.pack(">Q", len(part)))
    longer.update(part)
    return longer
