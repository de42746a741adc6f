"""Assembles the outcome of a request from those of its slices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from remy_proto.v1 import evaluation_pb2
from remy_simulator.columns.layout import NUMBER_BYTES
from remy_simulator.columns.recordings import (
    COUNTS_USES,
    RECORDS_MEMORY,
    memory_columns,
    memory_counts,
)
from remy_simulator.columns.senders import TransportRows
from remy_simulator.columns.slices import Slice
from remy_simulator.columns.specimens import sender_counts, specimen_count
from remy_simulator.messages import SENDER_COUNTS, SENDER_TIMES


class _Row(NamedTuple):
    """One candidate's simulations on the specimens of a part. Rows sort as in the whole outcome."""

    #: Position of the first simulation in the whole outcome, and in the part's.
    position: int
    first: int
    #: Index of the part.
    part: int


def assemble(
    request: evaluation_pb2.EvaluationRequest,
    parts: Iterable[tuple[Slice, evaluation_pb2.EvaluationOutcome]],
) -> evaluation_pb2.EvaluationOutcome:
    """Returns the outcome of a packed request from those of slices that cover it once.

    The parts may be in any order and must have been checked. The result equals, byte for byte, the
    outcome of the whole request. Raises ValueError if the slices do not cover it.
    """
    specimens = specimen_count(request)
    simulations = len(request.candidates) * specimens
    parts = list(parts)
    outcome = evaluation_pb2.EvaluationOutcome()
    rows = sorted(
        _Row(candidate * specimens + part.specimens.start, number * len(part.specimens), part_index)
        for part_index, (part, _) in enumerate(parts)
        for number, candidate in enumerate(part.candidates)
    )
    packets: list[int] = []
    scores = []
    for row in rows:
        part, result = parts[row.part]
        end_index = row.first + len(part.specimens)
        if row.position != len(packets):
            break
        packets += result.packets_sent[row.first : end_index]
        scores.append(result.scores[row.first * NUMBER_BYTES : end_index * NUMBER_BYTES])
    if len(packets) != simulations or sum(part.simulations for part, _ in parts) != simulations:
        raise ValueError(f"the parts do not cover the request's {simulations} simulations once")
    outcome.packets_sent.extend(packets)
    if request.HasField("objective"):
        outcome.scores = b"".join(scores)
    else:
        _assemble_senders(request, parts, rows, outcome.senders)
    if request.recording in COUNTS_USES:
        outcome.rule_uses.extend(
            sum(uses) for uses in zip(*(result.rule_uses for _, result in parts), strict=True)
        )
    if request.recording == evaluation_pb2.RECORDING_USED and simulations:
        outcome.used_rules = _union_of_masks(parts, specimens)
    if request.recording in RECORDS_MEMORY:
        counts: dict[int, int] = {}
        for _, result in parts:
            for place, count in memory_counts(result.memory):
                counts[place] = counts.get(place, 0) + count
        places = sorted(counts)
        outcome.memory.CopyFrom(memory_columns(places, [counts[place] for place in places]))
    return outcome


def _assemble_senders(
    request: evaluation_pb2.EvaluationRequest,
    parts: Sequence[tuple[Slice, evaluation_pb2.EvaluationOutcome]],
    rows: Iterable[_Row],
    senders: evaluation_pb2.SenderColumns,
) -> None:
    counts = sender_counts(request.specimen_columns)
    times: dict[str, list[bytes]] = {name: [] for name in SENDER_TIMES}
    transports = [TransportRows(result.senders.transport) for _, result in parts]
    if any(result.senders.HasField("transport") for _, result in parts):
        senders.transport.SetInParent()
    for row in rows:
        part, result = parts[row.part]
        width = sum(counts[part.specimens.start : part.specimens.stop])
        begin = row.first // max(len(part.specimens), 1) * width
        columns, end = result.senders, begin + width
        for name in SENDER_COUNTS:
            getattr(senders, name).extend(getattr(columns, name)[begin:end])
        if columns.HasField("transport"):
            transports[row.part].append_to(senders.transport, begin, end)
        place = slice(begin * NUMBER_BYTES, end * NUMBER_BYTES)
        for name, pieces in times.items():
            pieces.append(getattr(columns, name)[place])
    for name, pieces in times.items():
        setattr(senders, name, b"".join(pieces))


def _union_of_masks(
    parts: Iterable[tuple[Slice, evaluation_pb2.EvaluationOutcome]], specimens: int
) -> bytes:
    """Returns masks, by specimen, of the rules that any candidate used."""
    union = bytearray()
    for part, result in parts:
        if not part.simulations:
            continue
        width = len(result.used_rules) // len(part.specimens)
        union = union or bytearray(width * specimens)
        place = slice(part.specimens.start * width, part.specimens.stop * width)
        both = int.from_bytes(union[place], "little") | int.from_bytes(result.used_rules, "little")
        union[place] = both.to_bytes(len(result.used_rules), "little")
    return bytes(union)
