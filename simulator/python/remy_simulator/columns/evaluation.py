"""Evaluates a request, or a slice of it, in one native call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from remy_proto.v1 import evaluation_pb2, rule_table_pb2
from remy_simulator import _native, messages
from remy_simulator.columns.recordings import RECORDS_MEMORY, memory_columns
from remy_simulator.columns.senders import sender_columns
from remy_simulator.columns.specimens import packed
from remy_simulator.traces import RecordedTrace, Traces

_RECORDINGS = {
    evaluation_pb2.RECORDING_UNSPECIFIED: _native.Recording.NOTHING,
    evaluation_pb2.RECORDING_USES: _native.Recording.USES,
    evaluation_pb2.RECORDING_MEMORY: _native.Recording.MEMORY,
    evaluation_pb2.RECORDING_USED: _native.Recording.USED,
    evaluation_pb2.RECORDING_SHARES: _native.Recording.SHARES,
}


class InvalidRequest(ValueError):
    """An evaluation request is invalid. The message is one sentence."""


class PreparedRequest:
    """The part that all slices of a request share, converted once to the simulator's types.

    Thread-safe.
    """

    def __init__(
        self,
        shared: evaluation_pb2.EvaluationRequest,
        tables: Sequence[_native.RuleTable] | None = None,
        find_trace: Callable[[bytes], RecordedTrace | None] = lambda sha256: None,
    ) -> None:
        """`shared` may be a whole request, whose candidates and specimens are ignored.

        `tables` replaces its tables if given. `find_trace` looks up traces of which it contains
        only the hash. Raises InvalidRequest.
        """
        if shared.recording not in _RECORDINGS:
            raise InvalidRequest(
                f"recording is {shared.recording}, which is not one of 0 to {max(_RECORDINGS)}"
            )
        self.shared = shared
        self._recording = _RECORDINGS[shared.recording]
        try:
            native = native_tables(shared.tables) if tables is None else tables
            self._tables = [_native.CompiledTable(table) for table in native]
            kinds = shared.specimen_columns.kinds
            self._traces = Traces(shared.traces, find_trace)
            self._kinds = [_native_kind(kind, self._traces) for kind in kinds]
            self._objective = (
                messages.native_objective(shared.objective)
                if shared.HasField("objective")
                else None
            )
        except ValueError as problem:
            raise InvalidRequest(str(problem)) from problem
        self._has_transports = messages.has_transports(kinds, shared)

    @property
    def rules(self) -> int:
        """Number of rules of the table that candidates change."""
        return self._tables[0].rule_count if self._tables else 0

    def evaluate(
        self,
        part: evaluation_pb2.EvaluationRequest,
        threads: int = 1,
        cancellation: _native.Cancellation | None = None,
        packet_limit: int | None = None,
    ) -> evaluation_pb2.EvaluationOutcome:
        """Simulates, and scores if there is an objective, in one native call without the GIL.

        `part` is a result of `slice_request`, or the whole request. Raises InvalidRequest. Raises
        Cancelled within milliseconds after `cancellation.cancel()`, or if more than `packet_limit`
        packets are sent. In the main thread signal handlers run, and their exceptions propagate.
        """
        try:
            if part.specimens:
                part = packed(part)
                kinds = [_native_kind(kind, self._traces) for kind in part.specimen_columns.kinds]
                has_transports = messages.has_transports(part.specimen_columns.kinds, self.shared)
            else:
                kinds, has_transports = self._kinds, self._has_transports
            columns = part.specimen_columns
            result = _native.evaluate_columns(
                tables=self._tables,
                candidates=[self._candidate(candidate) for candidate in part.candidates],
                kinds=kinds,
                specimens=_native.SpecimenColumns(
                    keys=columns.keys,
                    link_rates_packets_per_ms=columns.link_rates_packets_per_ms,
                    rtts_ms=columns.rtts_ms,
                    buffers=columns.buffers[:],
                    loss_probabilities=columns.loss_probabilities,
                    kind=columns.kind[:],
                    sender_counts=columns.sender_counts[:],
                ),
                duration_ms=self.shared.duration_ms,
                seed=self.shared.seed,
                recording=self._recording,
                distributions=self.shared.distributions,
                objective=self._objective,
                threads=max(threads, 1),
                cancellation=cancellation,
                packet_limit=packet_limit,
            )
        except ValueError as problem:
            raise InvalidRequest(str(problem)) from problem
        outcome = evaluation_pb2.EvaluationOutcome(
            packets_sent=result.packets_sent,
            scores=result.scores,
            rule_uses=result.rule_uses,
            used_rules=result.used_rules,
        )
        if self._objective is None:
            outcome.senders.CopyFrom(sender_columns(result, has_transports=has_transports))
        if self.shared.recording in RECORDS_MEMORY:
            outcome.memory.CopyFrom(memory_columns(result.memory_places, result.memory_counts))
        return outcome

    def _candidate(
        self, candidate: evaluation_pb2.Candidate
    ) -> _native.Unchanged | _native.ActionChanges | _native.Perturbation:
        if not candidate.HasField("perturbation"):
            return messages.native_candidate(candidate)
        perturbation = candidate.perturbation
        seed = perturbation.seed if perturbation.HasField("seed") else self.shared.seed
        if perturbation.HasField("bounds"):
            bounds = messages.native_bounds(perturbation.bounds)
        else:
            bounds = self._bounds
        return _native.Perturbation(seed=seed, scale=perturbation.scale, bounds=bounds)

    @cached_property
    def _bounds(self) -> _native.ActionBounds:
        return messages.native_bounds(self.shared.bounds)


def evaluate_columns(
    request: evaluation_pb2.EvaluationRequest,
    threads: int = 1,
    tables: Sequence[_native.RuleTable] | None = None,
    cancellation: _native.Cancellation | None = None,
    packet_limit: int | None = None,
) -> evaluation_pb2.EvaluationOutcome:
    """Simulates every candidate on every specimen. Raises what PreparedRequest raises.

    A request can be retried, duplicated, and split by candidate and specimen. The result of a
    simulation depends only on the tables, the candidate, the specimen, the duration and the seed,
    and has the same bits on every machine and with any number of threads.
    """
    return PreparedRequest(request, tables).evaluate(request, threads, cancellation, packet_limit)


def native_tables(tables: Iterable[rule_table_pb2.RuleTable]) -> list[_native.RuleTable]:
    """Converts tables to the native type. Raises InvalidTable, a ValueError."""
    return [messages.to_native(table) for table in tables]


def _native_kind(kind: evaluation_pb2.SpecimenKind, traces: Traces) -> _native.SpecimenKind:
    return _native.SpecimenKind(
        measurement=messages.native_measurement(kind.measurement),
        senders=[messages.native_senders(group) for group in kind.senders],
        bottleneck=messages.native_bottleneck(kind),
        links=[messages.native_link(link, traces) for link in kind.links],
    )
