"""Everything that a coordinator exports, put together."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import version
from typing import Protocol, runtime_checkable

from prometheus_client import CollectorRegistry, ProcessCollector

from remy_farm.v1 import job_pb2
from remy_services.evaluation import SharedEvaluator
from remy_services.fleet.board import BoardSnapshot
from remy_services.stores import CheckpointStore
from remy_services.telemetry.activity import JobActivity
from remy_services.telemetry.catalogue import Metric, fleet, jobs, server, store
from remy_services.telemetry.exposition import in_loop
from remy_services.telemetry.fleet_samples import board_samples, evaluator_samples
from remy_services.telemetry.grpc_metrics import MeasuringInterceptor
from remy_services.telemetry.instruments import Instruments
from remy_services.telemetry.job_observer import JobObserver
from remy_services.telemetry.job_samples import job_samples
from remy_services.telemetry.measured_evaluator import MeasuredEvaluator
from remy_services.telemetry.measured_store import MeasuredStore
from remy_services.telemetry.samples import Reading, Sample, SampledCollector
from remy_services.telemetry.step_times import StepTimes, of_tasks

_COUNTED: tuple[Metric, ...] = (
    fleet.EVALUATIONS,
    fleet.SIMULATED_PACKETS,
    fleet.SIMULATED_SECONDS,
    fleet.EVALUATION_CPU_SECONDS,
    fleet.REQUESTS_FAILED,
    *store.METRICS,
    server.BUILD_INFO,
    server.GRPC_HANDLED,
    server.GRPC_DURATION,
    server.GRPC_OPEN,
)
_READ: tuple[Metric, ...] = (
    *jobs.METRICS,
    *(metric for metric in fleet.METRICS if metric not in _COUNTED),
    server.CERTIFICATE_EXPIRY,
    server.STEP_PHASE_SECONDS,
)


@runtime_checkable
class HasBoard(Protocol):
    """An evaluator that has its tasks on a board."""

    def snapshot(self) -> BoardSnapshot:
        """What the board holds and has counted. Called in the event loop."""


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
        self.instruments.set(
            server.BUILD_INFO,
            1,
            version("remy-farm"),
            version("remy-simulator"),
            platform.python_version(),
        )
        self._evaluator: MeasuredEvaluator | None = None
        self._board: HasBoard | None = None

    def store(self, inner: CheckpointStore) -> MeasuredStore:
        """The store, watched."""
        return MeasuredStore(inner, self.instruments, self.activity, self.step_times)

    def evaluator(self, inner: SharedEvaluator) -> MeasuredEvaluator:
        """The evaluator, watched; with what its board counts, if it has one."""
        self._board = inner if isinstance(inner, HasBoard) else None
        self._evaluator = MeasuredEvaluator(inner, self.instruments, self.activity, self.step_times)
        return self._evaluator

    def observer(self) -> JobObserver:
        """To be told what happens to jobs."""
        return JobObserver(self.step_times)

    def step_seconds(self) -> Mapping[str, float]:
        """Where the time of steps has gone up to now, by phase; for the coordinator's loop."""
        if self._board is not None:
            self.step_times.reach(of_tasks(self._board.snapshot()))
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
    ) -> None:
        """Exports what these functions tell, which are called in the loop.

        `all_jobs` tells how far every job is, `certificate_ends` the Unix times at which
        certificates end, by their use.
        """

        def read() -> Reading:
            present = list(all_jobs())
            self.activity.keep_only(job.id for job in present)
            yield from job_samples(present, self.activity)
            if self._evaluator is not None:
                yield from evaluator_samples(self._evaluator.info())
            if self._board is not None:
                yield from board_samples(self._board.snapshot())
            for phase, seconds in self.step_seconds().items():
                yield Sample(server.STEP_PHASE_SECONDS, seconds, (phase,))
            for use, unix_seconds in certificate_ends().items():
                yield Sample(server.CERTIFICATE_EXPIRY, unix_seconds, (use,))

        self.registry.register(SampledCollector(_READ, in_loop(loop, lambda: list(read()))))
