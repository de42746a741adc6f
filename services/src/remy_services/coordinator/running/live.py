"""What is known of a running job besides what has been committed."""

from __future__ import annotations

import time

from remy_farm.v1 import evaluation_pb2, job_pb2, spec_pb2
from remy_services.coordinator.running.desk import Desk
from remy_services.coordinator.running.stopwatch import Stopwatch
from remy_services.designer.clock_budgets import seconds_left
from remy_services.evaluation import Evaluation, EvaluationProgress
from remy_services.jobs.progress import cost
from remy_services.jobs.rates import RateMeter


class LiveProgress:
    """The running step, rates, clocks, and the guesses that are made of them."""

    def __init__(
        self, stopwatch: Stopwatch, before: job_pb2.JobProgress, price_per_cpu_hour: float | None
    ) -> None:
        self._stopwatch = stopwatch
        self._price = price_per_cpu_hour
        self._meter = RateMeter(time.monotonic(), before.evaluations, before.simulated_packets)
        self._evaluations = before.evaluations
        self._packets = before.simulated_packets
        self._candidates = 0
        self._share_of_step = 0.0

    def began(self, request: evaluation_pb2.EvaluationRequest, desk: Desk) -> None:
        """The evaluation of a request has begun."""
        self._evaluations, self._packets = desk.evaluations, desk.simulated_packets
        self._candidates = len(request.candidates)
        self._share_of_step = 0.0

    def reported(self, done: EvaluationProgress) -> None:
        """So much of it is done."""
        self._share_of_step = done.simulations_done / max(done.simulations, 1)
        self._meter.reached(
            time.monotonic(),
            self._evaluations + done.simulations_done,
            self._packets + done.simulated_packets,
        )

    def evaluated(self, evaluation: Evaluation) -> None:
        """All of it is done."""
        self._stopwatch.add_cpu(evaluation.cpu_seconds)
        self._meter.worked(time.monotonic(), evaluation.workers)

    def write(self, progress: job_pb2.JobProgress) -> None:
        """Sets what is known now."""
        now, elapsed = time.monotonic(), self._stopwatch.elapsed()
        rates = self._meter.rates(now)
        progress.candidates = self._candidates
        progress.candidates_done = int(self._share_of_step * self._candidates)
        progress.evaluations_per_second = rates.evaluations
        progress.packets_per_second = rates.packets
        progress.workers = self._meter.workers(now)
        progress.cpu_seconds = elapsed.cpu_seconds
        progress.wall_seconds = elapsed.wall_seconds
        if self._price is not None:
            progress.estimated_cost = cost(elapsed.cpu_seconds, self._price)

    def write_eta(self, progress: job_pb2.JobProgress, stop: spec_pb2.Stop, desk: Desk) -> None:
        """Sets a guess at the time left, or none."""
        left = seconds_left(
            stop,
            self._stopwatch.elapsed(),
            steps=desk.steps + self._share_of_step,
            epochs=desk.epochs,
            share_done=desk.share_done,
        )
        if left is None:
            progress.ClearField("eta_seconds")
        else:
            progress.eta_seconds = left
