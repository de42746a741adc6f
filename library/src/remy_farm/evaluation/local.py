"""Evaluates on threads of this process, for an event loop or for synchronous code."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from remy_farm.evaluation.dispatcher import Dispatcher
from remy_farm.evaluation.interface import OnProgress, Share
from remy_farm.evaluation.scheduler.records import Assignment, SchedulerSettings
from remy_farm.evaluation.scheduler.scheduler import TaskScheduler
from remy_farm.evaluation.scheduler.workers import WorkerFacts
from remy_proto.v1 import evaluation_pb2
from remy_simulator import Cancellation, Cancelled, InvalidRequest, PreparedRequest

_WORKER = "local"
# Tasks assigned per thread, running and waiting, so that threads have work if the event loop is
# late.
_TASKS_PER_THREAD = 4
# Threads never fall silent. Tasks are short, because they cost almost nothing to start and a step
# of a search should end on all threads at the same time.
_SETTINGS = SchedulerSettings(
    lease_seconds=math.inf, longest_task_seconds=0.1, shortest_task_seconds=0.002
)

_Simulated = tuple[evaluation_pb2.EvaluationOutcome, float]
_Result = TypeVar("_Result")


class ThreadPoolEvaluator(Dispatcher):
    """Evaluates with the simulator in this process, which releases the GIL. See SharedEvaluator."""

    kind = "local"

    def __init__(self, threads: int = 1, **options: Any) -> None:
        """Creates an evaluator with `threads` >= 1 threads. Dispatcher describes `options`."""
        if threads < 1:
            raise ValueError(f"threads is {threads}, but must be at least 1")
        super().__init__(TaskScheduler(_SETTINGS), **options)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="simulate")
        # Tasks that a thread runs or will run, by lease.
        self._running: dict[int, tuple[Future[_Simulated], Cancellation]] = {}
        # The converted shared part of each running evaluation, by evaluation id.
        self._prepared: dict[int, PreparedRequest | InvalidRequest] = {}
        self.scheduler.join(WorkerFacts(_WORKER, threads), self.now())
        self.scheduler.credit(_WORKER, _TASKS_PER_THREAD * threads, self.now())

    async def close(self) -> None:
        await super().close()
        for _, cancellation in self._running.values():
            cancellation.cancel()
        await asyncio.to_thread(self._pool.shutdown, cancel_futures=True)

    def _assign(self, assignments: Sequence[Assignment]) -> None:
        loop = asyncio.get_running_loop()
        for assignment in assignments:
            cancellation = Cancellation()
            prepared = self._prepare(assignment)
            future = self._pool.submit(_simulate, assignment, prepared, cancellation)
            self._running[assignment.lease_id] = (future, cancellation)
            future.add_done_callback(partial(self._on_done, loop, assignment))

    def _cancel(self, worker_id: str, lease_ids: Sequence[int]) -> None:
        for lease_id in lease_ids:
            # A task may have been answered in the meantime.
            running = self._running.get(lease_id)
            if running is not None:
                future, cancellation = running
                cancellation.cancel()
                future.cancel()

    def _expel(self, worker_id: str, why: str) -> None:
        raise RuntimeError(f"the threads of this process are quarantined: {why}")

    def _prepare(self, assignment: Assignment) -> PreparedRequest | InvalidRequest:
        prepared = self._prepared.get(assignment.evaluation_id)
        if prepared is None:
            for evaluation_id in [*self._prepared.keys() - self._pending.keys()]:
                del self._prepared[evaluation_id]
            try:
                prepared = PreparedRequest(assignment.whole, find_trace=self.find_trace)
            except InvalidRequest as problem:
                prepared = problem
            self._prepared[assignment.evaluation_id] = prepared
        return prepared

    def _on_done(
        self, loop: asyncio.AbstractEventLoop, assignment: Assignment, _: Future[_Simulated]
    ) -> None:
        # The event loop may be closed already.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._answer, assignment)

    def _answer(self, assignment: Assignment) -> None:
        scheduler, lease_id, now = self.scheduler, assignment.lease_id, self.now()
        future, cancellation = self._running.pop(lease_id)
        error = Cancelled() if future.cancelled() else future.exception()
        if error is None:
            outcome, cpu_seconds = future.result()
            scheduler.complete(_WORKER, lease_id, outcome, b"", cpu_seconds, now)
        elif isinstance(error, Cancelled) and cancellation.cancelled:
            scheduler.give_back(_WORKER, [lease_id], now)
        elif isinstance(error, (InvalidRequest, Cancelled)):
            # A simulation that stops without having been cancelled has reached its packet limit.
            over_limit = isinstance(error, Cancelled)
            scheduler.refuse(_WORKER, lease_id, str(error), now, over_limit=over_limit)
        else:
            self.fail(assignment.evaluation_id, error)
            scheduler.give_back(_WORKER, [lease_id], now)
        self.advance_soon()


class LocalEvaluator:
    """An Evaluator for synchronous code: a thread pool whose event loop runs during each call.

    An exception in the calling thread, also one from a signal handler, cancels the evaluation.
    """

    def __init__(self, threads: int = 1) -> None:
        """Creates an evaluator with `threads` >= 1 threads."""
        self._evaluator = ThreadPoolEvaluator(threads)
        self._loop = asyncio.new_event_loop()

    def evaluate(
        self,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
        packet_limit: int | None = None,
    ) -> evaluation_pb2.EvaluationOutcome:
        """See Evaluator. Raises PacketLimitReached if it sends more than `packet_limit` packets."""
        share = Share("", packet_limit=packet_limit)
        return self._run(self._evaluator.evaluate(share, request, on_progress)).outcome

    def close(self) -> None:
        """See Evaluator."""
        if not self._loop.is_closed():
            self._run(self._evaluator.close())
            self._run(self._loop.shutdown_default_executor())
            self._loop.close()

    def _run(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Runs the coroutine and returns its result; an exception in this thread cancels it.

        If an event loop already runs in this thread, as in a notebook, the coroutine runs in
        another thread.
        """
        task = self._loop.create_task(coroutine)
        try:
            if not in_event_loop():
                return self._loop.run_until_complete(task)
            with ThreadPoolExecutor(1, thread_name_prefix="evaluate") as other:
                try:
                    return other.submit(self._loop.run_until_complete, task).result()
                except BaseException:
                    with suppress(RuntimeError):
                        self._loop.call_soon_threadsafe(task.cancel)
                    raise
        finally:
            if not task.done():
                task.cancel()
                self._loop.run_until_complete(asyncio.wait([task]))


def in_event_loop() -> bool:
    """Whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _simulate(
    assignment: Assignment, prepared: PreparedRequest | InvalidRequest, cancellation: Cancellation
) -> _Simulated:
    if isinstance(prepared, InvalidRequest):
        raise prepared
    began = time.thread_time()
    part = assignment.slicing.slice(assignment.slice)
    limit = assignment.share.packet_limit
    outcome = prepared.evaluate(part, cancellation=cancellation, packet_limit=limit)
    return outcome, time.thread_time() - began
