"""Assembles a coordinator's metrics and serves them over HTTP."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Protocol, TypeVar, cast, runtime_checkable

from cryptography import x509
from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

from remy_farm.evaluation.interface import SharedEvaluator
from remy_farm.evaluation.scheduler.records import SchedulerSnapshot
from remy_farm.files import FileError, read_file
from remy_proto.v1 import job_pb2
from remy_services.stores.contract import CheckpointStore
from remy_services.telemetry import catalogue
from remy_services.telemetry.catalogue import Metric
from remy_services.telemetry.grpc_metrics import MeasuringInterceptor
from remy_services.telemetry.instrumentation import (
    Instruments,
    JobInstrumentation,
    MeasuredEvaluator,
    MeasuredStore,
    StepPhase,
    StepTimes,
)
from remy_services.telemetry.samples import (
    JobActivity,
    Reading,
    Sample,
    SampledCollector,
    WorkerPods,
    evaluator_samples,
    job_samples,
    scheduler_samples,
)

_MOST_BYTES = 1 << 20


def certificate_expiry_times(files: Mapping[str, Path]) -> dict[str, float]:
    """Returns the expiry (Unix time) of the first certificate in each PEM file, by its use.

    Files without a readable certificate are left out; the server that uses them reports the error.
    """
    ends = {}
    for use, path in files.items():
        try:
            certificate = x509.load_pem_x509_certificates(read_file(path, limit=_MOST_BYTES))[0]
        except (FileError, ValueError, IndexError):
            continue
        ends[use] = certificate.not_valid_after_utc.timestamp()
    return ends


# If the event loop is blocked for longer, the scrape fails, which makes the problem visible.
_LOOP_SECONDS = 5.0

_Result = TypeVar("_Result")


@contextmanager
def served(registry: CollectorRegistry, host: str, port: int) -> Iterator[int]:
    """Serves GET /metrics while the context is open, and yields the port. Port 0 picks a free one.

    Raises OSError if the port cannot be opened.
    """
    server, thread = start_http_server(port, host, registry)
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def in_loop(
    loop: asyncio.AbstractEventLoop, function: Callable[[], _Result]
) -> Callable[[], _Result]:
    """Makes a function of an event loop callable from another thread.

    The result runs `function` in the loop and waits for it. It raises TimeoutError if the loop is
    blocked, and RuntimeError if it has ended.
    """

    def call() -> _Result:
        reading = _call(function)
        try:
            return asyncio.run_coroutine_threadsafe(reading, loop).result(_LOOP_SECONDS)
        except RuntimeError:
            reading.close()
            raise

    return call


async def _call(function: Callable[[], _Result]) -> _Result:
    return function()


_MIRROR_METRICS = (catalogue.MIRROR_BEHIND_SECONDS, catalogue.MIRROR_FAILURES)
_PUSHED_METRICS: tuple[Metric, ...] = (
    catalogue.EVALUATIONS,
    catalogue.SIMULATED_PACKETS,
    catalogue.SIMULATED_SECONDS,
    catalogue.EVALUATION_CPU_SECONDS,
    catalogue.REQUESTS_FAILED,
    *(metric for metric in catalogue.STORE_METRICS if metric not in _MIRROR_METRICS),
    catalogue.BUILD_INFO,
    catalogue.GRPC_HANDLED,
    catalogue.GRPC_DURATION,
    catalogue.GRPC_OPEN,
)
_SCRAPED_METRICS: tuple[Metric, ...] = (
    *catalogue.JOB_METRICS,
    *(metric for metric in catalogue.EVALUATION_METRICS if metric not in _PUSHED_METRICS),
    *_MIRROR_METRICS,
    catalogue.CERTIFICATE_EXPIRY,
    catalogue.STEP_PHASE_SECONDS,
)


@runtime_checkable
class HasScheduler(Protocol):
    """An evaluator with a task scheduler."""

    def snapshot(self) -> SchedulerSnapshot:
        """Returns the scheduler's state and counters. To be called in the event loop."""


class Telemetry:
    """Wraps a coordinator's store and evaluator, and collects their metrics in `registry`.

    Wrap before calling `watch`.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.instruments = Instruments(self.registry, _PUSHED_METRICS)
        self.activity = JobActivity()
        self.step_times = StepTimes()
        ProcessCollector(registry=self.registry)
        self.instruments.series(
            catalogue.BUILD_INFO,
            version("remy-farm"),
            version("remy-simulator"),
            platform.python_version(),
        ).set(1)
        self._evaluator: MeasuredEvaluator | None = None
        self._scheduler: HasScheduler | None = None

    def store(self, inner: CheckpointStore) -> CheckpointStore:
        """Wraps the store."""
        measured = MeasuredStore(inner, self.instruments, self.activity, self.step_times)
        return cast(CheckpointStore, measured)

    def evaluator(self, inner: SharedEvaluator) -> MeasuredEvaluator:
        """Wraps the evaluator, and exports the counters of its scheduler if it has one."""
        self._scheduler = inner if isinstance(inner, HasScheduler) else None
        self._evaluator = MeasuredEvaluator(inner, self.instruments, self.activity, self.step_times)
        return self._evaluator

    def observer(self) -> JobInstrumentation:
        """Returns the observer of jobs."""
        return JobInstrumentation(self.step_times)

    def phase_seconds(self) -> Mapping[str, float]:
        """Returns the seconds spent in steps, by phase. To be called in the event loop."""
        if self._scheduler is not None:
            counts = self._scheduler.snapshot().counts
            self.step_times.raise_to(
                {
                    StepPhase.WAITING: counts.queue_times.seconds,
                    StepPhase.TRANSFER: counts.task_durations.seconds - counts.cpu_seconds,
                }
            )
        return self.step_times.seconds()

    def interceptor(self) -> MeasuringInterceptor:
        """Returns the gRPC interceptor, which must be the server's first."""
        return MeasuringInterceptor(self.instruments)

    def watch(
        self,
        loop: asyncio.AbstractEventLoop,
        all_jobs: Callable[[], Iterable[job_pb2.Job]],
        *,
        certificate_expiry: Callable[[], Mapping[str, float]] = dict,
        worker_pods: Callable[[], Mapping[str, WorkerPods]] = dict,
        mirror: Callable[[], tuple[float, int] | None] = lambda: None,
    ) -> None:
        """Exports the values that these functions return; they are called in the event loop.

        `all_jobs` returns jobs with live progress, `certificate_expiry` Unix times by use,
        `worker_pods` counts by job id, and `mirror` its lag in seconds and number of failures,
        or None without a mirror.
        """

        def read() -> Reading:
            present = list(all_jobs())
            self.activity.keep_only(job.id for job in present)
            self.activity.worker_pods = worker_pods()
            if self._scheduler is not None:
                self.activity.workers_lost = self._scheduler.snapshot().counts.workers_lost
            yield from job_samples(present, self.activity)
            if self._evaluator is not None:
                yield from evaluator_samples(self._evaluator.status())
            if self._scheduler is not None:
                yield from scheduler_samples(self._scheduler.snapshot())
            for phase, seconds in self.phase_seconds().items():
                yield Sample(catalogue.STEP_PHASE_SECONDS, seconds, (phase,))
            for metric, value in zip(_MIRROR_METRICS, mirror() or (), strict=False):
                yield Sample(metric, value)
            for use, unix_seconds in certificate_expiry().items():
                yield Sample(catalogue.CERTIFICATE_EXPIRY, unix_seconds, (use,))

        self.registry.register(
            SampledCollector(_SCRAPED_METRICS, in_loop(loop, lambda: list(read())))
        )
