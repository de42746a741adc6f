"""Slices of a request: ranges of its candidates and specimens, which tasks evaluate."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from remy_proto.v1 import evaluation_pb2
from remy_simulator.columns.layout import NUMBER_BYTES
from remy_simulator.columns.recordings import rule_count
from remy_simulator.columns.specimens import groups_before, specimen_count


@dataclass(frozen=True)
class Slice:
    """A range of a request's candidates and a range of its specimens."""

    candidates: range
    specimens: range

    @property
    def simulations(self) -> int:
        """Number of simulations, each of one candidate on one specimen."""
        return len(self.candidates) * len(self.specimens)


def whole(request: evaluation_pb2.EvaluationRequest) -> Slice:
    """Returns the slice that covers a request."""
    return Slice(range(len(request.candidates)), range(specimen_count(request)))


def shared_part(request: evaluation_pb2.EvaluationRequest) -> evaluation_pb2.EvaluationRequest:
    """Returns the part that all slices of a packed request share: all but candidates and specimens.

    Merging it with a `slice_request` (by `MergeFrom`, or by concatenating the serialized messages)
    gives the request of a slice. A worker that receives many slices needs the shared part once.
    """
    shared = evaluation_pb2.EvaluationRequest(
        tables=request.tables,
        duration_ms=request.duration_ms,
        seed=request.seed,
        recording=request.recording,
        distributions=request.distributions,
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
    """Returns only the candidates and specimens of a slice of a packed request."""
    return Slicing(request).slice(part)


class Slicing:
    """Makes many slices of a request: `slice_request` copies its bytes fields each time."""

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
        """Number of rules of the table that candidates change."""
        return rule_count(self.request.tables[0]) if self.request.tables else 0

    def slice(self, part: Slice) -> evaluation_pb2.EvaluationRequest:
        """Returns the candidates and specimens of a slice."""
        request, columns = self.request, self.request.specimen_columns
        first, end = part.specimens.start, part.specimens.stop
        place = slice(first * NUMBER_BYTES, end * NUMBER_BYTES)
        groups = slice(groups_before(columns, first), groups_before(columns, end))
        return evaluation_pb2.EvaluationRequest(
            candidates=request.candidates[part.candidates.start : part.candidates.stop],
            specimen_columns=evaluation_pb2.SpecimenColumns(
                keys=bytes(self._keys[place]),
                link_rates_packets_per_ms=bytes(self._rates[place]),
                rtts_ms=bytes(self._rtts[place]),
                buffers=columns.buffers[first:end],
                loss_probabilities=bytes(self._losses[place]),
                kind=columns.kind[first:end],
                sender_counts=columns.sender_counts[groups],
            ),
        )
