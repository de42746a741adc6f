"""An evaluator on this machine's threads."""

from __future__ import annotations

import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import remy_simulator
from remy_farm.v1 import evaluation_pb2
from remy_services.evaluation.evaluator import EvaluationProgress, OnProgress
from remy_services.evaluation.partition import Task, assemble, partition

# A task should take some 50 ms: long against what it costs to start one, short against a step, so
# that threads end a step together and an interrupt is heard.
_PACKETS_PER_TASK = 1e6
_TASKS_PER_THREAD = 8
_SECONDS_BETWEEN_REPORTS = 0.1


class LocalEvaluator:
    """Evaluates with the simulator in this process, which releases the GIL. See `Evaluator`."""

    def __init__(self, threads: int = 1) -> None:
        """An evaluator on `threads` >= 1 threads."""
        if threads < 1:
            raise ValueError(f"threads is {threads}; at least 1 is needed")
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="simulate")
        # Through all requests, since a request may take less time than is between two reports.
        self._reported_at_seconds = time.monotonic()

    def evaluate(
        self, request: evaluation_pb2.EvaluationRequest, on_progress: OnProgress | None = None
    ) -> evaluation_pb2.EvaluationOutcome:
        tasks = partition(request, self._simulations_per_task(request))
        running = {self._pool.submit(_simulate, task, request): task for task in tasks}
        try:
            return self._collect(request, running, on_progress)
        finally:
            for future in running:
                future.cancel()

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _collect(
        self,
        request: evaluation_pb2.EvaluationRequest,
        running: dict[Future[evaluation_pb2.EvaluationOutcome], Task],
        on_progress: OnProgress | None,
    ) -> evaluation_pb2.EvaluationOutcome:
        simulations = len(request.candidates) * len(request.specimens)
        parts = []
        done, packets = 0, 0
        waiting = set(running)
        while waiting:
            finished, waiting = wait(
                waiting, timeout=_SECONDS_BETWEEN_REPORTS, return_when=FIRST_COMPLETED
            )
            for future in finished:
                task, outcome = running[future], future.result()
                parts.append((task, outcome))
                done += task.simulations
                packets += sum(sum(result.packets_sent) for result in outcome.outcomes)
            now_seconds = time.monotonic()
            is_due = now_seconds - self._reported_at_seconds >= _SECONDS_BETWEEN_REPORTS
            if on_progress is not None and (is_due or not waiting):
                self._reported_at_seconds = now_seconds
                on_progress(EvaluationProgress(done, simulations, packets))
        return assemble(request, parts)

    def _simulations_per_task(self, request: evaluation_pb2.EvaluationRequest) -> int:
        simulations = len(request.candidates) * len(request.specimens)
        rates = [specimen.link_rate_packets_per_ms for specimen in request.specimens]
        packets = request.duration_ms * sum(rates) / max(len(rates), 1)
        by_time = int(_PACKETS_PER_TASK / max(packets, 1))
        by_balance = simulations // (self._threads * _TASKS_PER_THREAD)
        return max(1, min(by_time, by_balance))


def _simulate(
    task: Task, whole: evaluation_pb2.EvaluationRequest
) -> evaluation_pb2.EvaluationOutcome:
    return remy_simulator.evaluate(task.request(whole))
