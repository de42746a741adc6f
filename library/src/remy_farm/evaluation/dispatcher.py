"""The dispatcher: evaluations on a scheduler as calls that are waited for, in an event loop."""

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
from remy_farm.specification.referenced_files import recording_of
from remy_proto.v1 import evaluation_pb2
from remy_simulator import InvalidRequest
from remy_simulator.columns import assemble, packed
from remy_simulator.traces import RecordedTrace, TraceCache, named_traces

#: A recording's opportunities by their hash, from where a design keeps them; None: not there.
LoadTrace = Callable[[bytes], Awaitable[bytes | None]]
#: Keeps the bytes of a request that ended workers, by a file's name, and returns where they are.
#: Called in a thread; may block and may raise.
KeepReproduction = Callable[[str, bytes], str]

_SECONDS_BETWEEN_TICKS = 0.1
# Outcomes of so many simulations take some milliseconds.
_ASSEMBLED_AT_ONCE = 10_000


@dataclass(eq=False)
class _Waiting:
    """Somebody waits for an evaluation."""

    ended: asyncio.Future[Completion | Quarantine]
    on_progress: OnProgress | None
    #: That its links follow, by their hashes.
    recordings: dict[bytes, RecordedTrace] = field(default_factory=dict)
    reported: EvaluationProgress | None = None


async def _read_here(sha256: bytes) -> bytes | None:
    """One that this process has read with a specification."""
    recording = recording_of(sha256)
    return None if recording is None else recording.opportunities_us


class Dispatcher(ABC):
    """A SharedEvaluator on a scheduler: tells it the time, does what it returns, wakes who waits.

    Whoever inherits it brings tasks to workers. What it hears from them it tells the scheduler, and
    then calls `advance_soon`. Everything happens in the event loop of the first evaluation.
    """

    #: Of the evaluators, for people.
    kind: ClassVar[str]

    def __init__(
        self,
        scheduler: TaskScheduler,
        *,
        keep_reproduction: KeepReproduction | None = None,
        load_trace: LoadTrace = _read_here,
    ) -> None:
        """Requests of tasks that are given up are kept by `keep_reproduction`, if there is one.

        `load_trace` is asked for recordings that a request names and does not hold.
        """
        self.scheduler = scheduler
        self._keep_reproduction = keep_reproduction
        self._load_trace = load_trace
        self._traces = TraceCache()
        self._waiting: dict[int, _Waiting] = {}
        self._advance_is_due = False
        self._ticker: asyncio.Task[None] | None = None

    @abstractmethod
    def _assign(self, assignments: Sequence[Assignment]) -> None:
        """Workers are to do tasks. Called in the event loop, as all of these; must not block."""

    @abstractmethod
    def _cancel(self, worker_id: str, lease_ids: Sequence[int]) -> None:
        """Nobody waits for these any more."""

    @abstractmethod
    def _expel(self, worker_id: str, why: str) -> None:
        """A worker gets nothing any more and is to be disconnected."""

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
            raise ValueError(f"the weight of job {share.job_id} is {share.weight}; it is positive")
        loop = asyncio.get_running_loop()
        if self._ticker is None:
            self._ticker = loop.create_task(self._tick())
        request, recordings = await self._with_traces_named(packed(request))
        waiting = _Waiting(loop.create_future(), on_progress, recordings)
        evaluation_id = self.scheduler.submit(share, request)
        self._waiting[evaluation_id] = waiting
        self.advance_soon()
        try:
            end = await waiting.ended
        finally:
            del self._waiting[evaluation_id]
            self.scheduler.withdraw(evaluation_id)
            self.advance_soon()
        if isinstance(end, Quarantine):
            # Where it is kept may be far away.
            for trace in end.request.traces:
                trace.opportunities_us = recordings[trace.sha256].opportunities_us
            sentence = await asyncio.to_thread(describe_quarantine, end, self._keep_reproduction)
            raise TaskQuarantined(sentence)
        if sum(part.simulations for part, _ in end.parts) <= _ASSEMBLED_AT_ONCE:
            outcome = assemble(request, end.parts)
        else:
            # Beside the event loop, not in its way.
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
        """See SharedEvaluator. Only workers that call in report any."""
        return []

    def snapshot(self) -> SchedulerSnapshot:
        """What the scheduler holds, and what it has counted."""
        return self.scheduler.snapshot()

    def advance_soon(self) -> None:
        """Has the scheduler advance once all that is happening now has been told."""
        if not self._advance_is_due:
            self._advance_is_due = True
            asyncio.get_running_loop().call_soon(self._advance)

    def fail(self, evaluation_id: int, error: BaseException) -> None:
        """Ends an evaluation with an error that is nobody's fault but ours."""
        waiting = self._waiting.get(evaluation_id)
        if waiting is not None and not waiting.ended.done():
            waiting.ended.set_exception(error)

    def find_trace(self, sha256: bytes) -> RecordedTrace | None:
        """A recording that an evaluation under way needs, or one did of late."""
        for waiting in self._waiting.values():
            if sha256 in waiting.recordings:
                return waiting.recordings[sha256]
        return self._traces.find(sha256)

    async def _with_traces_named(
        self, request: evaluation_pb2.EvaluationRequest
    ) -> tuple[evaluation_pb2.EvaluationRequest, dict[bytes, RecordedTrace]]:
        """A packed request that names its recordings without holding them, and these."""
        hashes = named_traces(request)
        if not hashes:
            return request, {}
        given = {trace.sha256: trace.opportunities_us for trace in request.traces}
        recordings: dict[bytes, RecordedTrace] = {}
        for sha256 in hashes:
            recording = self.find_trace(sha256)
            if recording is None:
                opportunities_us = given.get(sha256) or await self._load_trace(sha256)
                if not opportunities_us:
                    raise InvalidRequest(
                        f"a link follows the trace {sha256.hex() or '(without a hash)'}, which is "
                        "neither in the request nor kept here"
                    )
                recording = self._traces.keep(opportunities_us)
                if recording.sha256 != sha256:
                    raise InvalidRequest(
                        f"the trace {sha256.hex()} has another SHA-256 than it is named by"
                    )
            recordings[sha256] = recording
        named = evaluation_pb2.EvaluationRequest()
        named.CopyFrom(request)
        del named.traces[:]
        named.traces.extend(evaluation_pb2.Trace(sha256=sha256) for sha256 in hashes)
        return named, recordings

    async def close(self) -> None:
        """Withdraws all evaluations."""
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)
        for waiting in self._waiting.values():
            waiting.ended.cancel()

    def _advance(self) -> None:
        self._advance_is_due = False
        try:
            self._do(self.scheduler.advance(self.now()))
        except Exception as error:
            # Whoever waits must hear of it.
            for evaluation_id in self._waiting:
                self.fail(evaluation_id, error)
            raise

    def _do(self, effects: Effects) -> None:
        if effects.assignments:
            self._assign(effects.assignments)
        for worker_id, lease_ids in effects.cancelled.items():
            self._cancel(worker_id, lease_ids)
        for worker_id, why in effects.expelled.items():
            self._expel(worker_id, why)
        for evaluation_id, end in effects.ended.items():
            waiting = self._waiting.get(evaluation_id)
            if waiting is None or waiting.ended.done():
                continue
            if isinstance(end, Completion | Quarantine):
                waiting.ended.set_result(end)
            else:
                waiting.ended.set_exception(end)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_TICKS)
            self.advance_soon()
            for evaluation_id, waiting in list(self._waiting.items()):
                progress = self.scheduler.progress(evaluation_id)
                if waiting.on_progress is None or progress in (None, waiting.reported):
                    continue
                waiting.reported = progress
                try:
                    waiting.on_progress(progress)
                except Exception as error:
                    self.fail(evaluation_id, error)


def describe_quarantine(quarantine: Quarantine, keep: KeepReproduction | None) -> str:
    """One sentence for people, after the task's request was kept, if there is somewhere to keep it.

    What is kept is a serialized EvaluationRequest, which `remy_simulator.evaluate_columns` takes.
    """
    what = (
        f"a task ended {len(quarantine.workers)} workers ({', '.join(quarantine.workers)}) "
        "and was given up"
    )
    if keep is None:
        return what
    content = quarantine.request.SerializeToString(deterministic=True)
    name = f"task-{hashlib.sha256(content).hexdigest()[:16]}.evaluation-request.bin"
    try:
        place = keep(name, content)
    # What the libraries of object stores raise has no common name.
    except Exception as error:
        return f"{what}; its request could not be kept: {error}"
    return f"{what}; its request is in {place}"
