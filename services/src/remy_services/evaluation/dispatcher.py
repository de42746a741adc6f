"""The dispatcher: evaluations on a scheduler as calls that are waited for, in an event loop."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import remy_simulator
from remy_farm.v1 import design_service_pb2, evaluation_pb2
from remy_services.evaluation.interface import (
    Evaluation,
    EvaluationProgress,
    OnProgress,
    ResultsDiffer,
    Share,
    TaskQuarantined,
)
from remy_services.evaluation.scheduler import (
    Assignment,
    BoardSnapshot,
    Completion,
    Contradiction,
    Effects,
    Quarantine,
    Refusal,
    TaskBoard,
)
from remy_services.evaluation.tasks import assemble
from remy_services.files import FileError, write_file

# What is left of a task that kept ending its workers: a file to reproduce it with.


def describe_quarantine(quarantine: Quarantine, folder: Path | None) -> str:
    """One sentence for people, after the task's request was written to `folder`, if there is one.

    The file holds a serialized EvaluationRequest, which `remy_simulator.evaluate` takes.
    """
    what = (
        f"a task ended {len(quarantine.workers)} workers ({', '.join(quarantine.workers)}) "
        "and was given up"
    )
    if folder is None:
        return what
    content = quarantine.request.SerializeToString(deterministic=True)
    path = folder / f"task-{hashlib.sha256(content).hexdigest()[:16]}.evaluation-request.bin"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_file(path, content)
    except (FileError, OSError) as error:
        return f"{what}; its request could not be kept: {error}"
    return f"{what}; its request is in {path}"


# What a fleet says of itself.


def describe_evaluators(kind: str, snapshot: BoardSnapshot) -> design_service_pb2.EvaluatorsInfo:
    """A board's snapshot for the service's clients."""
    return design_service_pb2.EvaluatorsInfo(
        kind=kind,
        workers=snapshot.workers,
        busy_workers=snapshot.busy_workers,
        threads=snapshot.threads,
        quarantined_workers=snapshot.quarantined_workers,
        tasks_waiting=snapshot.tasks_waiting,
        tasks_running=snapshot.tasks_running,
    )


# Evaluations on a board as calls that are waited for, in an event loop.


_SECONDS_BETWEEN_TICKS = 0.1
# Outcomes of so many simulations take some milliseconds.
_ASSEMBLED_AT_ONCE = 4000


class Transport(Protocol):
    """How what the board decides reaches its workers. Called in the event loop; must not block."""

    def assign(self, assignments: Sequence[Assignment]) -> None:
        """Workers are to do tasks."""

    def cancel(self, worker_id: str, lease_ids: Sequence[int]) -> None:
        """Nobody waits for these any more."""

    def expel(self, worker_id: str, why: str) -> None:
        """A worker gets nothing any more and is to be disconnected."""


@dataclass(eq=False)
class _Waiting:
    """Somebody waits for an evaluation."""

    ended: asyncio.Future[Completion]
    on_progress: OnProgress | None
    reported: EvaluationProgress | None = None


class Dispatcher:
    """Runs a board: tells it the time, does what it returns, and wakes those who wait.

    Whatever a transport hears from its workers it tells the board, and then calls `advance_soon`.
    Everything happens in the event loop of the first evaluation.
    """

    def __init__(
        self,
        board: TaskBoard,
        transport: Transport,
        *,
        reproductions: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Requests of tasks that are given up are written to the folder `reproductions`."""
        self.board = board
        self.now = clock
        self._transport = transport
        self._reproductions = reproductions
        self._waiting: dict[int, _Waiting] = {}
        self._advance_is_due = False
        self._ticker: asyncio.Task[None] | None = None

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
        waiting = _Waiting(loop.create_future(), on_progress)
        evaluation_id = self.board.submit(share, request)
        self._waiting[evaluation_id] = waiting
        self.advance_soon()
        try:
            completion = await waiting.ended
        finally:
            del self._waiting[evaluation_id]
            self.board.withdraw(evaluation_id)
            self.advance_soon()
        outcome = await _assembled(request, completion)
        if on_progress is not None:
            on_progress(_last_progress(outcome))
        return Evaluation(outcome, completion.cpu_seconds, completion.workers)

    def advance_soon(self) -> None:
        """Has the board advance once all that is happening now has been told."""
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
            self._do(self.board.advance(self.now()))
        except Exception as error:
            # Whoever waits must hear of it.
            for evaluation_id in self._waiting:
                self.fail(evaluation_id, error)
            raise

    def _do(self, effects: Effects) -> None:
        if effects.assignments:
            self._transport.assign(effects.assignments)
        for worker_id, lease_ids in effects.cancelled.items():
            self._transport.cancel(worker_id, lease_ids)
        for worker_id, why in effects.expelled.items():
            self._transport.expel(worker_id, why)
        for evaluation_id, end in effects.ended.items():
            waiting = self._waiting.get(evaluation_id)
            if waiting is None or waiting.ended.done():
                continue
            match end:
                case Completion():
                    waiting.ended.set_result(end)
                case Refusal():
                    waiting.ended.set_exception(remy_simulator.InvalidRequest(end.why))
                case Contradiction():
                    waiting.ended.set_exception(ResultsDiffer(end.why))
                case Quarantine():
                    sentence = describe_quarantine(end, self._reproductions)
                    waiting.ended.set_exception(TaskQuarantined(sentence))

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_SECONDS_BETWEEN_TICKS)
            self.advance_soon()
            for evaluation_id, waiting in list(self._waiting.items()):
                self._report(evaluation_id, waiting)

    def _report(self, evaluation_id: int, waiting: _Waiting) -> None:
        progress = self.board.progress(evaluation_id)
        if waiting.on_progress is None or progress is None or progress == waiting.reported:
            return
        waiting.reported = progress
        try:
            waiting.on_progress(progress)
        except Exception as error:
            self.fail(evaluation_id, error)


async def _assembled(
    request: evaluation_pb2.EvaluationRequest, completion: Completion
) -> evaluation_pb2.EvaluationOutcome:
    """The outcome in order; a large one is put in order beside the event loop, not in its way."""
    if len(request.candidates) * len(request.specimens) <= _ASSEMBLED_AT_ONCE:
        return assemble(request, completion.parts)
    return await asyncio.to_thread(assemble, request, completion.parts)


def _last_progress(outcome: evaluation_pb2.EvaluationOutcome) -> EvaluationProgress:
    simulations = len(outcome.outcomes)
    packets = sum(sum(result.packets_sent) for result in outcome.outcomes)
    return EvaluationProgress(simulations, simulations, packets)
