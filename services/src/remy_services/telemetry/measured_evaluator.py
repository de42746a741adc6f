"""Evaluators that are watched: what they did, and when each job last heard of them."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import design_service_pb2, evaluation_pb2
from remy_services.evaluation import (
    Evaluation,
    EvaluationProgress,
    OnProgress,
    Share,
    SharedEvaluator,
)
from remy_services.telemetry.activity import JobActivity
from remy_services.telemetry.catalogue import fleet
from remy_services.telemetry.instruments import Instruments
from remy_services.telemetry.step_times import Phase, StepTimes
from remy_services.telemetry.tracing import trace_parent

_MS_PER_SECOND = 1000.0


class MeasuredEvaluator:
    """Passes everything on to a SharedEvaluator, and answers exactly as it does."""

    def __init__(
        self,
        evaluator: SharedEvaluator,
        instruments: Instruments,
        activity: JobActivity,
        step_times: StepTimes,
    ) -> None:
        self._evaluator = evaluator
        self._instruments = instruments
        self._activity = activity
        self._step_times = step_times

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        self._activity.requested(share.job_id)
        tally = _Tally(self._instruments, request.duration_ms / _MS_PER_SECOND)

        def watch(progress: EvaluationProgress) -> None:
            if tally.reach(progress.simulations_done, progress.simulated_packets):
                self._activity.evaluated(share.job_id)
            if on_progress is not None:
                on_progress(progress)

        try:
            evaluation = await self._evaluator.evaluate(
                replace(share, trace_parent=trace_parent()), request, watch
            )
        except Exception:
            self._instruments.count(fleet.REQUESTS_FAILED)
            raise
        packets = sum(sum(each.packets_sent) for each in evaluation.outcome.outcomes)
        tally.reach(len(evaluation.outcome.outcomes), packets)
        self._activity.evaluated(share.job_id)
        self._instruments.count(fleet.EVALUATION_CPU_SECONDS, by=evaluation.cpu_seconds)
        self._step_times.add(Phase.SIMULATION, evaluation.cpu_seconds)
        return evaluation

    def info(self) -> design_service_pb2.EvaluatorsInfo:
        return self._evaluator.info()

    async def close(self) -> None:
        await self._evaluator.close()


class _Tally:
    """Counts what one request's evaluation has come to, each simulation once."""

    def __init__(self, instruments: Instruments, simulation_seconds: float) -> None:
        self._instruments = instruments
        self._simulation_seconds = simulation_seconds
        self._simulations = 0
        self._packets = 0

    def reach(self, simulations: int, packets: int) -> bool:
        """So much is done; whether that is more than before."""
        more = max(simulations - self._simulations, 0)
        self._instruments.count(fleet.EVALUATIONS, by=more)
        self._instruments.count(fleet.SIMULATED_SECONDS, by=more * self._simulation_seconds)
        self._instruments.count(fleet.SIMULATED_PACKETS, by=max(packets - self._packets, 0))
        self._simulations = max(simulations, self._simulations)
        self._packets = max(packets, self._packets)
        return more > 0
