"""Everything that a coordinator exports, put together, and its page over HTTP."""

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


def ends_of(files: Mapping[str, Path]) -> dict[str, float]:
    """Unix time at which the first certificate of each PEM file ends, by its use.

    A file without a certificate is left out: whoever serves with it says what is wrong.
    """
    ends = {}
    for use, path in files.items():
        try:
            certificate = x509.load_pem_x509_certificates(read_file(path, limit=_MOST_BYTES))[0]
        except (FileError, ValueError, IndexError):
            continue
        ends[use] = certificate.not_valid_after_utc.timestamp()
    return ends


# A loop that is held up for longer fails the scrape, which is what somebody should see.
_LOOP_SECONDS = 5.0

_Result = TypeVar("_Result")


@contextmanager
def served(registry: CollectorRegistry, host: str, port: int) -> Iterator[int]:
    """Answers GET /metrics while it lasts; yields the port, which may be asked for as 0.

    Raises OSError if it cannot listen there.
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
    """Has another thread call what belongs to an event loop, between two of its callbacks.

    What is returned raises TimeoutError if the loop is held up, and RuntimeError if it has ended.
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


_OF_MIRROR = (catalogue.MIRROR_BEHIND_SECONDS, catalogue.MIRROR_FAILURES)
_COUNTED: tuple[Metric, ...] = (
    catalogue.EVALUATIONS,
    catalogue.SIMULATED_PACKETS,
    catalogue.SIMULATED_SECONDS,
    catalogue.EVALUATION_CPU_SECONDS,
    catalogue.REQUESTS_FAILED,
    *(metric for metric in catalogue.STORE_METRICS if metric not in _OF_MIRROR),
    catalogue.BUILD_INFO,
    catalogue.GRPC_HANDLED,
    catalogue.GRPC_DURATION,
    catalogue.GRPC_OPEN,
)
_READ: tuple[Metric, ...] = (
    *catalogue.JOB_METRICS,
    *(metric for metric in catalogue.EVALUATION_METRICS if metric not in _COUNTED),
    *_OF_MIRROR,
    catalogue.CERTIFICATE_EXPIRY,
    catalogue.STEP_PHASE_SECONDS,
)


@runtime_checkable
class HasBoard(Protocol):
    """An evaluator that has its tasks on a scheduler."""

    def snapshot(self) -> SchedulerSnapshot:
        """What the scheduler holds and has counted. Called in the event loop."""


class Telemetry:
    """Wraps what a coordinator is made of, and exports what can be seen of it.

    Wrap first, then `watch`; `registry` is what is exported.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.instruments = Instruments(self.registry, _COUNTED)
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
        self._board: HasBoard | None = None

    def store(self, inner: CheckpointStore) -> CheckpointStore:
        """The store, watched."""
        watched = MeasuredStore(inner, self.instruments, self.activity, self.step_times)
        return cast(CheckpointStore, watched)

    def evaluator(self, inner: SharedEvaluator) -> MeasuredEvaluator:
        """The evaluator, watched; with what its scheduler counts, if it has one."""
        self._board = inner if isinstance(inner, HasBoard) else None
        self._evaluator = MeasuredEvaluator(inner, self.instruments, self.activity, self.step_times)
        return self._evaluator

    def observer(self) -> JobInstrumentation:
        """To be told what happens to jobs."""
        return JobInstrumentation(self.step_times)

    def step_seconds(self) -> Mapping[str, float]:
        """Where the time of steps has gone up to now, by phase; for the coordinator's loop."""
        if self._board is not None:
            counts = self._board.snapshot().counts
            self.step_times.reach(
                {
                    StepPhase.WAITING: counts.queue_times.seconds,
                    StepPhase.TRANSFER: counts.task_durations.seconds - counts.cpu_seconds,
                }
            )
        return self.step_times.seconds()

    def interceptor(self) -> MeasuringInterceptor:
        """To be the first of the server's interceptors."""
        return MeasuringInterceptor(self.instruments)

    def watch(
        self,
        loop: asyncio.AbstractEventLoop,
        all_jobs: Callable[[], Iterable[job_pb2.Job]],
        *,
        certificate_ends: Callable[[], Mapping[str, float]] = dict,
        worker_pods: Callable[[], Mapping[str, WorkerPods]] = dict,
        mirror: Callable[[], tuple[float, int] | None] = lambda: None,
    ) -> None:
        """Exports what these functions tell, which are called in the loop.

        `all_jobs` tells how far every job is, `certificate_ends` the Unix times at which
        certificates end, by their use, `worker_pods` the pods of jobs, and `mirror` for how many
        seconds it has been behind, and how often a write to it failed, if there is one.
        """

        def read() -> Reading:
            present = list(all_jobs())
            self.activity.keep_only(job.id for job in present)
            self.activity.worker_pods = worker_pods()
            if self._board is not None:
                self.activity.workers_lost = self._board.snapshot().counts.workers_lost
            yield from job_samples(present, self.activity)
            if self._evaluator is not None:
                yield from evaluator_samples(self._evaluator.status())
            if self._board is not None:
                yield from scheduler_samples(self._board.snapshot())
            for phase, seconds in self.step_seconds().items():
                yield Sample(catalogue.STEP_PHASE_SECONDS, seconds, (phase,))
            for metric, value in zip(_OF_MIRROR, mirror() or (), strict=False):
                yield Sample(metric, value)
            for use, unix_seconds in certificate_ends().items():
                yield Sample(catalogue.CERTIFICATE_EXPIRY, unix_seconds, (use,))

        self.registry.register(SampledCollector(_READ, in_loop(loop, lambda: list(read()))))
