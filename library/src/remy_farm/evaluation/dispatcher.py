"""Runs evaluations on a task scheduler as coroutines of an event loop."""

from __future__ import annotations

import asyncio
import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from remy_farm.evaluation.interface import (
    Evaluation,
    EvaluationProgress,
    EvaluatorStatus,
    OnProgress,
    Share,
    TaskQuarantined,
    WorkerLine,
)
from remy_farm.evaluation.scheduler.records import (
    Assignment,
    Completion,
    Effects,
    Quarantine,
    SchedulerSnapshot,
)
from remy_farm.evaluation.scheduler.scheduler import TaskScheduler
from remy_farm.specification.referenced_files import trace_of
from remy_proto.v1 import evaluation_pb2
from remy_simulator import InvalidRequest
from remy_simulator.columns import assemble, packed
from remy_simulator.traces import RecordedTrace, TraceCache, named_traces

#: Loads the opportunities of a link trace by its SHA-256; returns None if it is not stored.
LoadTrace = Callable[[bytes], Awaitable[bytes | None]]
#: Stores the request of a poison task under a file name, and returns where it is stored. It is
#: called in a thread, so it may block. It may raise.
KeepReproduction = Callable[[str, bytes], str]

_SECONDS_BETWEEN_TICKS = 0.1
# Larger outcomes are assembled in a thread, because that takes more than some milliseconds.
_ASSEMBLED_IN_LOOP = 10_000


@dataclass(eq=False)
class _PendingEvaluation:
    """An evaluation whose caller waits for its end."""

    ended: asyncio.Future[Completion | Quarantine]
    on_progress: OnProgress | None
    #: The traces that its links use, by SHA-256.
    traces: dict[bytes, RecordedTrace] = field(default_factory=dict)
    reported: EvaluationProgress | None = None


async def _load_from_process(sha256: bytes) -> bytes | None:
    """Loads a trace that this process has read with a specification."""
    trace = trace_of(sha256)
    return None if trace is None else trace.opportunities_us


class Dispatcher(ABC):
    """A SharedEvaluator that drives a task scheduler: it calls `advance` and carries out its
    effects.

    Subclasses send tasks to workers. They report the workers' events to the scheduler and then call
    `advance_soon`. Everything runs in the event loop of the first evaluation.
    """

    #: Kind of evaluator, for people.
    kind: ClassVar[str]

    def __init__(
        self,
        scheduler: TaskScheduler,
        *,
        keep_reproduction: KeepReproduction | None = None,
        load_trace: LoadTrace = _load_from_process,
    ) -> None:
        """Creates a dispatcher for `scheduler`.

        `keep_reproduction`, if given, stores the requests of quarantined tasks. `load_trace` loads
        traces that a request names but does not contain.
        """
        self.scheduler = scheduler
        self._keep_reproduction = keep_reproduction
        self._load_trace = load_trace
        self._traces = TraceCache()
        self._pending: dict[int, _PendingEvaluation] = {}
        self._advance_is_due = False
        self._ticker: asyncio.Task[None] | None = None

    @abstractmethod
    def _assign(self, assignments: Sequence[Assignment]) -> None:
        """Sends tasks to workers.

        The scheduler's effects are carried out in the event loop, so that this method, `_cancel`
        and `_expel` must not block.
        """

    @abstractmethod
    def _cancel(self, worker_id: str, lease_ids: Sequence[int]) -> None:
        """Tells a worker that leases are cancelled."""

    @abstractmethod
    def _expel(self, worker_id: str, why: str) -> None:
        """Disconnects a quarantined worker; `why` is one sentence."""

    def now(self) -> float:
        """The scheduler's clock, seconds."""
        return time.monotonic()

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        """See SharedEvaluator."""
        if not share.weight > 0:
            raise ValueError(
                f"the weight of job {share.job_id} is {share.weight}, but must be positive"
            )
        loop = asyncio.get_running_loop()
        if self._ticker is None:
            self._ticker = loop.create_task(self._tick())
        request, traces = await self._extract_traces(packed(request))
        pending = _PendingEvaluation(loop.create_future(), on_progress, traces)
        evaluation_id = self.scheduler.submit(share, request)
        self._pending[evaluation_id] = pending
        self.advance_soon()
        try:
            end = await pending.ended
        finally:
            del self._pending[evaluation_id]
            self.scheduler.withdraw(evaluation_id)
            self.advance_soon()
        if isinstance(end, Quarantine):
            # The stored request must be complete, because it may be reproduced elsewhere.
            for trace in end.request.traces:
                trace.opportunities_us = traces[trace.sha256].opportunities_us
            sentence = await asyncio.to_thread(describe_quarantine, end, self._keep_reproduction)
            raise TaskQuarantined(sentence)
        if sum(part.simulations for part, _ in end.parts) <= _ASSEMBLED_IN_LOOP:
            outcome = assemble(request, end.parts)
        else:
            outcome = await asyncio.to_thread(assemble, request, end.parts)
        if on_progress is not None:
            simulations, packets = len(outcome.packets_sent), sum(outcome.packets_sent)
            on_progress(EvaluationProgress(simulations, simulations, packets))
        return Evaluation(outcome, end.cpu_seconds, end.workers)

    def status(self) -> EvaluatorStatus:
        """See SharedEvaluator."""
        snapshot = self.snapshot()
        return EvaluatorStatus(
            kind=self.kind,
            workers=snapshot.workers,
            busy_workers=snapshot.busy_workers,
            threads=snapshot.threads,
            quarantined_workers=snapshot.quarantined_workers,
            tasks_waiting=snapshot.tasks_waiting,
            tasks_running=snapshot.tasks_running,
        )

    def worker_lines(self, job_id: str) -> list[WorkerLine]:
        """See SharedEvaluator. Only evaluators with remote workers have log lines."""
        return []

    def snapshot(self) -> SchedulerSnapshot:
        """The scheduler's present state, with its counters."""
        return self.scheduler.snapshot()

    def advance_soon(self) -> None:
        """Schedules a call of the scheduler's `advance` for after the events in progress."""
        if not self._advance_is_due:
            self._advance_is_due = True
            asyncio.get_running_loop().call_soon(self._advance)

    def fail(self, evaluation_id: int, error: BaseException) -> None:
        """Ends an evaluation with an internal error."""
        pending = self._pending.get(evaluation_id)
        if pending is not None and not pending.ended.done():
            pending.ended.set_exception(error)

    def find_trace(self, sha256: bytes) -> RecordedTrace | None:
        """A trace that an open evaluation uses, or a recent one used; None if there is none."""
        for pending in self._pending.values():
            if sha256 in pending.traces:
                return pending.traces[sha256]
        return self._traces.find(sha256)

    async def _extract_traces(
        self, request: evaluation_pb2.EvaluationRequest
    ) -> tuple[evaluation_pb2.EvaluationRequest, dict[bytes, RecordedTrace]]:
        """Returns a packed request without the content of its traces, and the traces."""
        hashes = named_traces(request)
        if not hashes:
            return request, {}
        given = {trace.sha256: trace.opportunities_us for trace in request.traces}
        traces: dict[bytes, RecordedTrace] = {}
        for sha256 in hashes:
            trace = self.find_trace(sha256)
            if trace is None:
                opportunities_us = given.get(sha256) or await self._load_trace(sha256)
                if not opportunities_us:
                    raise InvalidRequest(
                        f"a link uses the trace {sha256.hex() or '(without a hash)'}, which is "
                        "neither in the request nor stored here"
                    )
                trace = self._traces.keep(opportunities_us)
                if trace.sha256 != sha256:
                    raise InvalidRequest(
                        f"the SHA-256 of the trace {sha256.hex()} is {trace.sha256.hex()}"
                    )
            traces[sha256] = trace
        named = evaluation_pb2.EvaluationRequest()
        named.CopyFrom(request)
        del named.traces[:]
        named.traces.extend(evaluation_pb2.Trace(sha256=sha256) for sha256 in hashes)
        return named, traces

    async def close(self) -> None:
        """Withdraws all evaluations."""
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)
        for pending in self._pending.values():
            pending.ended.cancel()

    def _advance(self) -> None:
        self._advance_is_due = False
        try:
            self._apply(self.scheduler.advance(self.now()))
        except Exception as error:
            # The callers that wait for evaluations must get the error.
            for evaluation_id in self._pending:
                self.fail(evaluation_id, error)
            raise

    def _apply(self, effects: Effects) -> None:
        if effects.assignments:
            self._assign(effects.assignments)
        for worker_id, lease_ids in effects.cancelled.items():
            self._cancel(worker_id, lease_ids)
        for worker_id, why in effects.expelled.items():
            self._expel(worker_id, why)
        for evaluation_id, end in effects.ended.items():
            pending = self._pending.get(evaluation_id)
            if pending is None or pending.ended.done():
                continue
            if isinstance(end, Completion | Quarantine):
                pending.ended.set_result(end)
            else:
                pending.ended.set_exception(end)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_TICKS)
            self.advance_soon()
            for evaluation_id, pending in list(self._pending.items()):
                progress = self.scheduler.progress(evaluation_id)
                if pending.on_progress is None or progress in (None, pending.reported):
                    continue
                pending.reported = progress
                try:
                    pending.on_progress(progress)
                except Exception as error:
                    self.fail(evaluation_id, error)


def describe_quarantine(quarantine: Quarantine, keep: KeepReproduction | None) -> str:
    """Stores the request of a poison task with `keep`, if given, and describes it in one sentence.

    The stored file is a serialized EvaluationRequest, which `remy_simulator.evaluate_columns`
    accepts.
    """
    sentence = (
        f"a task killed {len(quarantine.workers)} workers ({', '.join(quarantine.workers)}) "
        "and was given up"
    )
    if keep is None:
        return sentence
    content = quarantine.request.SerializeToString(deterministic=True)
    name = f"task-{hashlib.sha256(content).hexdigest()[:16]}.evaluation-request.bin"
    try:
        location = keep(name, content)
    # Exceptions of object store libraries have no common base class.
    except Exception as error:
        return f"{sentence}; its request could not be stored: {error}"
    return f"{sentence}; its request is in {location}"
