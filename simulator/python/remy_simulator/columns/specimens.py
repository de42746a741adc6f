"""Converts specimens to columns and back, and counts them.

The numbers of specimens are columns. Everything else is their kind; a request has few kinds and
contains each once.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import pairwise

from remy_proto.v1 import evaluation_pb2
from remy_simulator.columns.layout import NUMBER_BYTES, numbers


def pack_specimens(
    specimens: Iterable[evaluation_pb2.Specimen],
) -> evaluation_pb2.SpecimenColumns:
    """Converts specimens to columns. Equal specimens give equal bytes."""
    columns = evaluation_pb2.SpecimenColumns()
    kinds: dict[bytes, int] = {}
    numbers, counts = [], []
    keys, rates, rtts, losses = array("Q"), array("d"), array("d"), array("d")
    buffers = []
    for specimen in specimens:
        keys.append(specimen.key)
        rates.append(specimen.link_rate_packets_per_ms)
        rtts.append(specimen.rtt_ms)
        losses.append(specimen.loss_probability)
        buffers.append(specimen.buffer_packets + 1 if specimen.HasField("buffer_packets") else 0)
        kind = evaluation_pb2.SpecimenKind(senders=specimen.senders, links=specimen.links)
        if specimen.HasField("measurement"):
            kind.measurement.CopyFrom(specimen.measurement)
        if specimen.HasField("bottleneck"):
            kind.bottleneck.CopyFrom(specimen.bottleneck)
        for group in kind.senders:
            counts.append(group.count)
            group.ClearField("count")
        name = kind.SerializeToString(deterministic=True)
        number = kinds.setdefault(name, len(kinds))
        if number == len(columns.kinds):
            columns.kinds.append(kind)
        numbers.append(number)
    columns.keys = keys.tobytes()
    columns.link_rates_packets_per_ms = rates.tobytes()
    columns.rtts_ms = rtts.tobytes()
    columns.sender_counts.extend(counts)
    if any(buffers):
        columns.buffers.extend(buffers)
    if any(losses):
        columns.loss_probabilities = losses.tobytes()
    if any(numbers):
        columns.kind.extend(numbers)
    return columns


def unpack_specimens(
    columns: evaluation_pb2.SpecimenColumns,
) -> list[evaluation_pb2.Specimen]:
    """Inverse of pack_specimens."""
    specimens = []
    count = iter(columns.sender_counts)
    for number, key in enumerate(memoryview(columns.keys).cast("Q")):
        kind = columns.kinds[columns.kind[number] if columns.kind else 0]
        specimen = evaluation_pb2.Specimen(
            key=key,
            link_rate_packets_per_ms=numbers(columns.link_rates_packets_per_ms)[number],
            rtt_ms=numbers(columns.rtts_ms)[number],
            senders=kind.senders,
            links=kind.links,
        )
        if columns.buffers and columns.buffers[number]:
            specimen.buffer_packets = columns.buffers[number] - 1
        if columns.loss_probabilities:
            specimen.loss_probability = numbers(columns.loss_probabilities)[number]
        if kind.HasField("measurement"):
            specimen.measurement.CopyFrom(kind.measurement)
        if kind.HasField("bottleneck"):
            specimen.bottleneck.CopyFrom(kind.bottleneck)
        for group in specimen.senders:
            group.count = next(count)
        specimens.append(specimen)
    return specimens


def specimen_count(request: evaluation_pb2.EvaluationRequest) -> int:
    """Returns the number of specimens of a request."""
    return len(request.specimens) or len(request.specimen_columns.keys) // NUMBER_BYTES


def packed(request: evaluation_pb2.EvaluationRequest) -> evaluation_pb2.EvaluationRequest:
    """Returns the request with its specimens as columns; the request itself if it has columns."""
    if not request.specimens:
        return request
    copy = evaluation_pb2.EvaluationRequest()
    copy.CopyFrom(request)
    copy.specimen_columns.CopyFrom(pack_specimens(request.specimens))
    copy.ClearField("specimens")
    return copy


def _group_counts(columns: evaluation_pb2.SpecimenColumns) -> list[int]:
    """Returns the number of sender groups before each specimen, and in total."""
    groups = [len(kind.senders) for kind in columns.kinds]
    specimens = len(columns.keys) // NUMBER_BYTES
    if not columns.kind:
        width = groups[0] if groups else 0
        return [width * number for number in range(specimens + 1)]
    before = [0]
    for number in columns.kind:
        before.append(before[-1] + groups[number])
    return before


def groups_before(columns: evaluation_pb2.SpecimenColumns, specimen: int) -> int:
    """Returns the number of sender groups of all specimens before this one."""
    if columns.kind:
        return _group_counts(columns)[specimen]
    return specimen * len(columns.kinds[0].senders) if columns.kinds else 0


def sender_counts(columns: evaluation_pb2.SpecimenColumns) -> list[int]:
    """Returns the number of senders of each specimen."""
    before = _group_counts(columns)
    counts = columns.sender_counts[:]
    if before[-1] == len(before) - 1:
        return counts
    return [sum(counts[first:end]) for first, end in pairwise(before)]
