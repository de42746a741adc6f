"""An evaluator that many designs share, on this process's threads."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import remy_simulator
from remy_farm.v1 import design_service_pb2, evaluation_pb2
from remy_services.evaluation import Evaluation, EvaluationProgress, OnProgress, Share
from remy_services.evaluation.partition import Task, assemble, partition

_TASKS_PER_THREAD = 4


class LocalFleet:
    """Evaluates with the simulator in this process, which releases the GIL. See SharedEvaluator."""

    def __init__(self, threads: int = 1) -> None:
        """A fleet of `threads` >= 1 threads."""
        if threads < 1:
            raise ValueError(f"threads is {threads}; at least 1 is needed")
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="simulate")
        self._waiting = 0

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        simulations = len(request.candidates) * len(request.specimens)
        tasks = partition(request, max(1, simulations // (self._threads * _TASKS_PER_THREAD)))
        loop = asyncio.get_running_loop()
        done, packets, cpu_seconds = 0, 0, 0.0
        parts = []
        calls = [loop.run_in_executor(self._pool, _simulate, task, request) for task in tasks]
        self._waiting += len(calls)
        try:
            for task, call in zip(tasks, calls, strict=True):
                outcome, seconds = await call
                parts.append((task, outcome))
                done += task.simulations
                packets += sum(sum(result.packets_sent) for result in outcome.outcomes)
                cpu_seconds += seconds
                if on_progress is not None:
                    on_progress(EvaluationProgress(done, simulations, packets))
        finally:
            self._waiting -= len(calls)
            for call in calls:
                call.cancel()
        return Evaluation(assemble(request, parts), cpu_seconds, frozenset({"local"}))

    def info(self) -> design_service_pb2.EvaluatorsInfo:
        return design_service_pb2.EvaluatorsInfo(
            kind="local",
            workers=1,
            busy_workers=int(self._waiting > 0),
            threads=self._threads,
            tasks_waiting=max(self._waiting - self._threads, 0),
            tasks_running=min(self._waiting, self._threads),
        )

    async def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def _simulate(
    task: Task, whole: evaluation_pb2.EvaluationRequest
) -> tuple[evaluation_pb2.EvaluationOutcome, float]:
    began = time.thread_time()
    outcome = remy_simulator.evaluate(task.request(whole))
    return outcome, time.thread_time() - began
