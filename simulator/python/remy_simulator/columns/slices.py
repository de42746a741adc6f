"""Slices of a request: some of its candidates on some of its specimens, as tasks are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from remy_proto.v1 import evaluation_pb2
from remy_simulator.columns.layout import NUMBER_BYTES
from remy_simulator.columns.recordings import rule_count
from remy_simulator.columns.specimens import groups_before, specimen_count


@dataclass(frozen=True)
class Slice:
    """Some of a request's candidates on some of its specimens."""

    candidates: range
    specimens: range

    @property
    def simulations(self) -> int:
        """Simulations of one specimen under one candidate."""
        return len(self.candidates) * len(self.specimens)


def whole(request: evaluation_pb2.EvaluationRequest) -> Slice:
    """All of a request."""
    return Slice(range(len(request.candidates)), range(specimen_count(request)))


def shared_part(request: evaluation_pb2.EvaluationRequest) -> evaluation_pb2.EvaluationRequest:
    """The part that all slices of a packed request share: all but candidates and specimens.

    A request is its shared part merged with `slice_request` (`MergeFrom`, or serialized one behind
    the other), so that whoever gets many slices needs the shared part once.
    """
    shared = evaluation_pb2.EvaluationRequest(
        tables=request.tables,
        duration_ms=request.duration_ms,
        seed=request.seed,
        recording=request.recording,
        specimen_columns=evaluation_pb2.SpecimenColumns(kinds=request.specimen_columns.kinds),
        traces=request.traces,
    )
    if request.HasField("objective"):
        shared.objective.CopyFrom(request.objective)
    if request.HasField("bounds"):
        shared.bounds.CopyFrom(request.bounds)
    return shared


def slice_request(
    request: evaluation_pb2.EvaluationRequest, part: Slice
) -> evaluation_pb2.EvaluationRequest:
    """The candidates and specimens of a slice of a packed request, and nothing else."""
    return Slicing(request).slice(part)


class Slicing:
    """`slice_request` of many slices: a message's bytes are copied whenever they are looked at."""

    def __init__(self, request: evaluation_pb2.EvaluationRequest) -> None:
        """The request must not change."""
        self.request = request
        columns = request.specimen_columns
        self._keys, self._rates, self._rtts, self._losses = (
            memoryview(column)
            for column in (
                columns.keys,
                columns.link_rates_packets_per_ms,
                columns.rtts_ms,
                columns.loss_probabilities,
            )
        )

    @cached_property
    def rules(self) -> int:
        """Rules of the table that candidates change."""
        return rule_count(self.request.tables[0]) if self.request.tables else 0

    def slice(self, part: Slice) -> evaluation_pb2.EvaluationRequest:
        """The candidates and specimens of a slice."""
        request, columns = self.request, self.request.specimen_columns
        first, behind = part.specimens.start, part.specimens.stop
        place = slice(first * NUMBER_BYTES, behind * NUMBER_BYTES)
        groups = slice(groups_before(columns, first), groups_before(columns, behind))
        return evaluation_pb2.EvaluationRequest(
            candidates=request.candidates[part.candidates.start : part.candidates.stop],
            specimen_columns=evaluation_pb2.SpecimenColumns(
                keys=bytes(self._keys[place]),
                link_rates_packets_per_ms=bytes(self._rates[place]),
                rtts_ms=bytes(self._rtts[place]),
                buffers=columns.buffers[first:behind],
                loss_probabilities=bytes(self._losses[place]),
                kind=columns.kind[first:behind],
                sender_counts=columns.sender_counts[groups],
            ),
        )
