"""Instrumentation: wrappers that count and time the operations of stores, evaluators and jobs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import prometheus_client
import structlog
from prometheus_client import CollectorRegistry

from remy_farm.evaluation.interface import (
    Evaluation,
    EvaluationProgress,
    EvaluatorStatus,
    OnProgress,
    Share,
    SharedEvaluator,
    WorkerLine,
)
from remy_proto.v1 import evaluation_pb2, job_pb2, progress_pb2
from remy_proto.v1.job_pb2 import JobState
from remy_rpc.tracing import span, trace_parent
from remy_services.jobs.states import FAILED, JobObserver, name_of
from remy_services.stores.contract import (
    CheckpointStore,
    Commit,
    Conflict,
    Durability,
    Fenced,
    StoreError,
    StoreUnavailable,
)
from remy_services.telemetry import catalogue
from remy_services.telemetry.catalogue import Kind, Metric
from remy_services.telemetry.samples import JobActivity
from remy_simulator.columns import specimen_count

# Suppresses the `_created` series of each counter, which no dashboard uses.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
_INSTRUMENTS: dict[Kind, Callable[..., Any]] = {
    Kind.COUNTER: prometheus_client.Counter,
    Kind.GAUGE: prometheus_client.Gauge,
    Kind.HISTOGRAM: prometheus_client.Histogram,
}


class Instruments:
    """Holds the Prometheus instruments of some metrics. Thread-safe."""

    def __init__(self, registry: CollectorRegistry, metrics: Sequence[Metric]) -> None:
        self._of: dict[str, Any] = {
            metric.name: _INSTRUMENTS[metric.kind](
                metric.name,
                metric.help,
                metric.labels,
                registry=registry,
                **({"buckets": metric.buckets} if metric.buckets else {}),
            )
            for metric in metrics
        }

    def series(self, metric: Metric, *labels: str) -> Any:
        """Returns the series with these labels, and exports it from now on.

        Exporting a counter at 0 lets `increase()` see its first count.
        """
        instrument = self._of[metric.name]
        return instrument.labels(*labels) if labels else instrument


class StepPhase(StrEnum):
    """Phase of a step."""

    #: Tasks wait for a worker.
    WAITING = "waiting"
    #: Tasks and results are in transit, or a task is queued on a worker.
    TRANSFER = "transfer"
    #: Simulation, in CPU time.
    SIMULATION = "simulation"
    #: Store reads and commits.
    STORE = "store"
    #: Designers compute the next request.
    SEARCH = "search"


class StepTimes:
    """Seconds by phase since the process started. Thread-safe.

    Waiting, transfer and simulation are summed over concurrent tasks; store and search are time of
    the coordinator.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds = dict.fromkeys(StepPhase, 0.0)

    def add(self, phase: StepPhase, seconds: float) -> None:
        """Adds time to a phase; negative durations are ignored."""
        with self._lock:
            self._seconds[phase] += max(seconds, 0.0)

    def raise_to(self, totals: Mapping[StepPhase, float]) -> None:
        """Raises phases to these totals; smaller totals are ignored."""
        with self._lock:
            for phase, seconds in totals.items():
                self._seconds[phase] = max(self._seconds[phase], seconds)

    def seconds(self) -> dict[str, float]:
        """Returns the seconds by phase name."""
        with self._lock:
            return {str(phase): seconds for phase, seconds in self._seconds.items()}


_OPERATIONS = (
    *("check", "create", "acquire", "commit", "job", "jobs", "snapshots"),
    *("prune_snapshots", "events", "epochs", "epoch", "delete"),
)
_REASONS = {Fenced: "fenced", Conflict: "conflict", StoreUnavailable: "unavailable"}


@dataclass(eq=False)
class MeasuredStore:
    """Wraps a CheckpointStore, and counts and times the operations in `_OPERATIONS`."""

    store: CheckpointStore
    instruments: Instruments
    activity: JobActivity
    step_times: StepTimes

    def __post_init__(self) -> None:
        instruments = self.instruments
        for operation in _OPERATIONS:
            instruments.series(catalogue.STORE_ERRORS, operation)
            instruments.series(catalogue.STORE_OPERATION, operation)
        for reason in (*_REASONS.values(), "other"):
            instruments.series(catalogue.CHECKPOINT_FAILURES, reason)
        durability = self.durability()
        instruments.series(catalogue.STORE_INFO, durability.kind, durability.version).set(1)
        instruments.series(catalogue.STORE_AVAILABLE).set(1)

    def __getattr__(self, operation: str) -> Any:
        call = getattr(self.store, operation)
        return self._measured(operation)(call) if operation in _OPERATIONS else call

    def durability(self) -> Durability:
        durability = self.store.durability()
        self.instruments.series(catalogue.STORE_DURABLE).set(durability.durable)
        return durability

    def check(self) -> None:
        with self._measured("check"):
            self.store.check()
            usage = self.store.usage()
        for kind, size_bytes in usage.items():
            self.instruments.series(catalogue.STORE_BYTES, kind).set(size_bytes)

    def acquire(self, job_id: str, holder: str) -> int:
        with self._measured("acquire"):
            token = self.store.acquire(job_id, holder)
        self.activity.taken(job_id)
        return token

    def commit(self, job_id: str, token: int, revision: int, commit: Commit) -> int:
        began = time.perf_counter()
        try:
            with self._measured("commit"):
                new_revision = self.store.commit(job_id, token, revision, commit)
        except StoreError as error:
            if commit.snapshot is not None:
                reason = _REASONS.get(type(error), "other")
                self.instruments.series(catalogue.CHECKPOINT_FAILURES, reason).inc()
            raise
        if commit.snapshot is not None:
            self.instruments.series(catalogue.CHECKPOINT_DURATION).observe(
                time.perf_counter() - began
            )
            self.instruments.series(catalogue.CHECKPOINT_SIZE).observe(len(commit.snapshot))
            self.activity.checkpointed(job_id, len(commit.snapshot))
        return new_revision

    @contextmanager
    def _measured(self, operation: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        except StoreError as error:
            self.instruments.series(catalogue.STORE_ERRORS, operation).inc()
            if isinstance(error, Fenced):
                self.instruments.series(catalogue.FENCING_CONFLICTS).inc()
            if isinstance(error, StoreUnavailable):
                self.instruments.series(catalogue.STORE_AVAILABLE).set(0)
            raise
        seconds = time.perf_counter() - began
        self.instruments.series(catalogue.STORE_AVAILABLE).set(1)
        self.instruments.series(catalogue.STORE_OPERATION, operation).observe(seconds)
        self.step_times.add(StepPhase.STORE, seconds)


_MS_PER_SECOND = 1000.0


@dataclass(eq=False)
class MeasuredEvaluator:
    """Wraps a SharedEvaluator, and counts and times its evaluations."""

    evaluator: SharedEvaluator
    instruments: Instruments
    activity: JobActivity
    step_times: StepTimes

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        self.activity.requested(share.job_id)
        tally = _Tally(self.instruments, request.duration_ms / _MS_PER_SECOND)

        def watch(progress: EvaluationProgress) -> None:
            if tally.update(progress.simulations_done, progress.simulated_packets):
                self.activity.evaluated(share.job_id)
            if on_progress is not None:
                on_progress(progress)

        try:
            evaluation = await self.evaluator.evaluate(
                replace(share, trace_parent=trace_parent()), request, watch
            )
        except Exception:
            self.instruments.series(catalogue.REQUESTS_FAILED).inc()
            raise
        packets = evaluation.outcome.packets_sent
        tally.update(len(packets), sum(packets))
        self.activity.evaluated(share.job_id)
        self.instruments.series(catalogue.EVALUATION_CPU_SECONDS).inc(evaluation.cpu_seconds)
        self.step_times.add(StepPhase.SIMULATION, evaluation.cpu_seconds)
        return evaluation

    def status(self) -> EvaluatorStatus:
        return self.evaluator.status()

    def worker_lines(self, job_id: str) -> list[WorkerLine]:
        return self.evaluator.worker_lines(job_id)

    async def close(self) -> None:
        await self.evaluator.close()


@dataclass(eq=False)
class _Tally:
    """Adds the progress of one request to the counters, counting each simulation once."""

    instruments: Instruments
    simulation_seconds: float
    simulations: int = 0
    packets: int = 0

    def update(self, simulations: int, packets: int) -> bool:
        """Raises the totals to these values; returns whether simulations were added."""
        more = max(simulations - self.simulations, 0)
        self.instruments.series(catalogue.EVALUATIONS).inc(more)
        self.instruments.series(catalogue.SIMULATED_SECONDS).inc(more * self.simulation_seconds)
        self.instruments.series(catalogue.SIMULATED_PACKETS).inc(max(packets - self.packets, 0))
        self.simulations = max(simulations, self.simulations)
        self.packets = max(packets, self.packets)
        return more > 0


_LOG = structlog.stdlib.get_logger("jobs")


class JobInstrumentation(JobObserver):
    """Logs job events, traces steps, and accumulates the CPU time of designers."""

    def __init__(self, step_times: StepTimes) -> None:
        self._step_times = step_times

    def state_changed(self, job: job_pb2.Job, before: JobState) -> None:
        """Logs a committed state change."""
        log = _LOG.warning if job.state == FAILED else _LOG.info
        log(
            "job changed its state",
            job_id=job.id,
            job_name=job.name,
            before=name_of(before),
            state=name_of(job.state),
            why=job.status_message,
        )

    @contextmanager
    def step(self, job: job_pb2.Job, request: evaluation_pb2.EvaluationRequest) -> Iterator[None]:
        """Opens a span for a step, and binds job id and step number to log lines."""
        number = job.progress.step + 1
        with (
            structlog.contextvars.bound_contextvars(job_id=job.id, step=number),
            span(
                "step",
                job_id=job.id,
                step=number,
                candidates=len(request.candidates),
                specimens=specimen_count(request),
            ),
        ):
            yield

    def progressed(self, job: job_pb2.Job, event: progress_pb2.ProgressEvent) -> None:
        """Logs committed milestones of the search."""
        match event.WhichOneof("event"):
            case "epoch_finished":
                record = event.epoch_finished.record
                _LOG.info(
                    "epoch finished",
                    job_id=job.id,
                    epoch=record.epoch,
                    step=event.step,
                    rules=record.rules,
                    gain=record.comparison.gain.mean,
                    accepted=record.comparison.accepted,
                )
            case "design_finished":
                finished = event.design_finished
                reason = progress_pb2.StopReason.Name(finished.reason)
                _LOG.info("design finished", job_id=job.id, step=event.step, reason=reason)

    def computed(self, job_id: str, seconds: float) -> None:
        """Adds CPU time to the search phase."""
        self._step_times.add(StepPhase.SEARCH, seconds)

    def on_store_unavailable(self, job_id: str, why: str) -> None:
        """Logs a commit that will be retried."""
        _LOG.warning("a commit failed and will be retried", job_id=job_id, why=why)

    def on_store_recovered(self, job_id: str) -> None:
        """Logs that the retried commit succeeded."""
        _LOG.info("the store accepts commits again", job_id=job_id)

    def lost(self, job_id: str, why: str) -> None:
        """Logs that another coordinator acquired the job."""
        _LOG.warning("job acquired by another coordinator", job_id=job_id, why=why)
