"""The dispatcher: evaluations on a scheduler as calls that are waited for, in an event loop."""

from __future__ import annotations

import asyncio
import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import fsspec.core

from remy_farm.v1 import design_service_pb2, evaluation_pb2
from remy_services.evaluation.interface import (
    Evaluation,
    EvaluationProgress,
    OnProgress,
    Share,
    TaskQuarantined,
)
from remy_services.evaluation.scheduler.records import (
    Assignment,
    Completion,
    Effects,
    Quarantine,
    SchedulerSnapshot,
)
from remy_services.evaluation.scheduler.scheduler import TaskScheduler
from remy_services.files import write_file
from remy_simulator.columns import assemble, packed

_SECONDS_BETWEEN_TICKS = 0.1
# Outcomes of so many simulations take some milliseconds.
_ASSEMBLED_AT_ONCE = 10_000


@dataclass(eq=False)
class _Waiting:
    """Somebody waits for an evaluation."""

    ended: asyncio.Future[Completion | Quarantine]
    on_progress: OnProgress | None
    reported: EvaluationProgress | None = None


class Dispatcher(ABC):
    """A SharedEvaluator on a scheduler: tells it the time, does what it returns, wakes who waits.

    Whoever inherits it brings tasks to workers. What it hears from them it tells the scheduler, and
    then calls `advance_soon`. Everything happens in the event loop of the first evaluation.
    """

    #: Of the evaluators, for people.
    kind: ClassVar[str]

    def __init__(
        self, scheduler: TaskScheduler, *, reproductions: str | Path | None = None
    ) -> None:
        """Requests of tasks that are given up are written to the folder or URL `reproductions`."""
        self.scheduler = scheduler
        self._reproductions = reproductions
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
        request = packed(request)
        waiting = _Waiting(loop.create_future(), on_progress)
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
            sentence = await asyncio.to_thread(describe_quarantine, end, self._reproductions)
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

    def info(self) -> design_service_pb2.EvaluatorsInfo:
        """See SharedEvaluator."""
        snapshot = self.snapshot()
        return design_service_pb2.EvaluatorsInfo(
            kind=self.kind,
            workers=snapshot.workers,
            busy_workers=snapshot.busy_workers,
            threads=snapshot.threads,
            quarantined_workers=snapshot.quarantined_workers,
            tasks_waiting=snapshot.tasks_waiting,
            tasks_running=snapshot.tasks_running,
        )

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


def describe_quarantine(quarantine: Quarantine, folder: str | Path | None) -> str:
    """One sentence for people, after the task's request was written to `folder`, if there is one.

    The folder may be a URL, as of a mirror. The file holds a serialized EvaluationRequest, which
    `remy_simulator.evaluate_columns` takes.
    """
    what = (
        f"a task ended {len(quarantine.workers)} workers ({', '.join(quarantine.workers)}) "
        "and was given up"
    )
    if folder is None:
        return what
    content = quarantine.request.SerializeToString(deterministic=True)
    path = f"{folder}/task-{hashlib.sha256(content).hexdigest()[:16]}.evaluation-request.bin"
    try:
        if "://" in path:
            files, name = fsspec.core.url_to_fs(path, auto_mkdir=path.startswith("file:"))
            files.pipe_file(name, content)
        else:
            Path(folder).mkdir(parents=True, exist_ok=True)
            write_file(path, content)
    # What the libraries of object stores raise has no common name.
    except Exception as error:
        return f"{what}; its request could not be kept: {error}"
    return f"{what}; its request is in {path}"
