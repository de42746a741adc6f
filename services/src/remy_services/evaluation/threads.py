"""An evaluator of one design on this process's threads."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

import remy_simulator
from remy_farm.v1 import evaluation_pb2
from remy_services.evaluation.interface import EvaluationProgress, OnProgress
from remy_services.evaluation.tasks import Task, assemble, partition

# A task should take some 50 ms: long against what it costs to start one, short against a step, so
# that threads end a step together and an interrupt is heard.
_PACKETS_PER_TASK = 1e6
_TASKS_PER_THREAD = 16
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
        work = _Work(request, partition(request, self._simulations_per_task(request)))
        running = {self._pool.submit(work.simulate) for _ in range(self._threads)}
        try:
            self._wait(work, running, on_progress)
        finally:
            work.abandon()
        return assemble(request, work.done)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)

    def _wait(
        self, work: _Work, running: set[Future[None]], on_progress: OnProgress | None
    ) -> None:
        while running:
            finished, running = wait(
                running, timeout=_SECONDS_BETWEEN_REPORTS, return_when=FIRST_EXCEPTION
            )
            for future in finished:
                future.result()
            now_seconds = time.monotonic()
            is_due = now_seconds - self._reported_at_seconds >= _SECONDS_BETWEEN_REPORTS
            if on_progress is not None and (is_due or not running):
                self._reported_at_seconds = now_seconds
                on_progress(work.progress())

    def _simulations_per_task(self, request: evaluation_pb2.EvaluationRequest) -> int:
        simulations = len(request.candidates) * len(request.specimens)
        rates = [specimen.link_rate_packets_per_ms for specimen in request.specimens]
        packets = request.duration_ms * sum(rates) / max(len(rates), 1)
        by_time = int(_PACKETS_PER_TASK / max(packets, 1))
        by_balance = simulations // (self._threads * _TASKS_PER_THREAD)
        return max(1, min(by_time, by_balance))


class _Work:
    """The tasks of a request. Threads take one after the other until there is none left."""

    def __init__(self, request: evaluation_pb2.EvaluationRequest, tasks: list[Task]) -> None:
        self._request = request
        try:
            self._tables = remy_simulator.native_tables(request.tables)
        except ValueError as problem:
            raise remy_simulator.InvalidRequest(str(problem)) from problem
        # Longest first, so that no thread is left with a long one at the end.
        self._left = deque(sorted(tasks, key=self._packets_per_ms, reverse=True))
        #: What is done, in the order of its end.
        self.done: list[tuple[Task, evaluation_pb2.EvaluationOutcome]] = []
        self._simulations = len(request.candidates) * len(request.specimens)
        self._counted = 0
        self._simulations_done = 0
        self._packets = 0

    def simulate(self) -> None:
        """In a thread of its own: takes tasks until there is none left."""
        while True:
            try:
                task = self._left.popleft()
            except IndexError:
                return
            part = task.request_without_tables(self._request)
            outcome = remy_simulator.evaluate(part, tables=self._tables)
            self.done.append((task, outcome))

    def abandon(self) -> None:
        """No further task is begun."""
        self._left.clear()

    def progress(self) -> EvaluationProgress:
        """How far it is."""
        news = self.done[self._counted :]
        self._counted += len(news)
        for task, outcome in news:
            self._simulations_done += task.simulations
            self._packets += sum(sum(result.packets_sent) for result in outcome.outcomes)
        return EvaluationProgress(self._simulations_done, self._simulations, self._packets)

    def _packets_per_ms(self, task: Task) -> float:
        specimens = self._request.specimens[task.specimens.start : task.specimens.stop]
        rates = sum(specimen.link_rate_packets_per_ms for specimen in specimens)
        return len(task.candidates) * rates
