"""An evaluator that many designs share, on this process's threads."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import remy_simulator
from remy_farm.v1 import design_service_pb2, evaluation_pb2
from remy_services.evaluation.dispatcher import Dispatcher, describe_evaluators
from remy_services.evaluation.interface import Evaluation, OnProgress, Share
from remy_services.evaluation.scheduler import (
    Assignment,
    BoardSettings,
    BoardSnapshot,
    TaskBoard,
    WorkerFacts,
)

_WORKER = "local"
# Threads never fall silent. Tasks are short, since they
# cost next to nothing to start and a step of a search should end on all threads at once. Threads
# take what they do next from a common line, which is long enough for the event loop to be late.
_TASKS_PER_THREAD = 4
_SETTINGS = BoardSettings(
    lease_seconds=math.inf,
    longest_task_seconds=0.1,
    shortest_task_seconds=0.002,
)

_Simulated = tuple[evaluation_pb2.EvaluationOutcome, float]


class LocalFleet:
    """Evaluates with the simulator in this process, which releases the GIL. See SharedEvaluator."""

    def __init__(self, threads: int = 1) -> None:
        """A fleet of `threads` >= 1 threads."""
        if threads < 1:
            raise ValueError(f"threads is {threads}; at least 1 is needed")
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="simulate")
        self._running: dict[int, Future[_Simulated]] = {}
        self._dispatcher = Dispatcher(TaskBoard(_SETTINGS), self)
        board = self._dispatcher.board
        board.join(WorkerFacts(_WORKER, threads), self._dispatcher.now())
        board.credit(_WORKER, _TASKS_PER_THREAD * threads, self._dispatcher.now())

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        return await self._dispatcher.evaluate(share, request, on_progress)

    def info(self) -> design_service_pb2.EvaluatorsInfo:
        return describe_evaluators("local", self.snapshot())

    def snapshot(self) -> BoardSnapshot:
        """What the board holds and has counted."""
        return self._dispatcher.board.snapshot()

    async def close(self) -> None:
        await self._dispatcher.close()
        await asyncio.to_thread(self._pool.shutdown, cancel_futures=True)

    # What the dispatcher asks of a transport.

    def assign(self, assignments: Sequence[Assignment]) -> None:
        loop = asyncio.get_running_loop()
        for assignment in assignments:
            future = self._pool.submit(_simulate, assignment)
            self._running[assignment.lease_id] = future
            future.add_done_callback(partial(self._ended, loop, assignment))

    def cancel(self, worker_id: str, lease_ids: Sequence[int]) -> None:
        for lease_id in lease_ids:
            # One that was answered meanwhile is not running any more.
            if lease_id in self._running:
                self._running[lease_id].cancel()

    def expel(self, worker_id: str, why: str) -> None:
        raise RuntimeError(f"the threads of this process are quarantined: {why}")

    def _ended(
        self, loop: asyncio.AbstractEventLoop, assignment: Assignment, _: Future[_Simulated]
    ) -> None:
        # A thread may end a task when the loop that wanted it is closed.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._answer, assignment)

    def _answer(self, assignment: Assignment) -> None:
        board, now = self._dispatcher.board, self._dispatcher.now()
        future = self._running.pop(assignment.lease_id)
        error = None if future.cancelled() else future.exception()
        if future.cancelled():
            board.give_back(_WORKER, [assignment.lease_id], now)
        elif isinstance(error, remy_simulator.InvalidRequest):
            board.refuse(_WORKER, assignment.lease_id, str(error), now)
        elif error is not None:
            self._dispatcher.fail(assignment.evaluation_id, error)
            board.give_back(_WORKER, [assignment.lease_id], now)
        else:
            outcome, cpu_seconds = future.result()
            board.complete(_WORKER, assignment.lease_id, outcome, b"", cpu_seconds, now)
        self._dispatcher.advance_soon()


def _simulate(assignment: Assignment) -> _Simulated:
    began = time.thread_time()
    outcome = remy_simulator.evaluate(assignment.slice.request(assignment.whole))
    return outcome, time.thread_time() - began
