"""Metrics of one worker process, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from importlib.metadata import version

import structlog
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    start_http_server,
)

# A second series for each counter, with its time of birth, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]

_log = structlog.get_logger()

_TASK_BUCKETS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class TaskEnd(StrEnum):
    """How a task ended on this worker."""

    DONE = "done"
    #: The simulator refused it.
    REFUSED = "refused"
    #: The worker gave it back undone, because it ends.
    RETURNED = "returned"
    #: Its result was not wanted any more.
    CANCELLED = "cancelled"


class WorkerMetrics:
    """Counts and measures; may be used from any thread."""

    def __init__(self, threads: int) -> None:
        """For a worker of so many simulating threads."""
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        info = Gauge(
            "remy_farm_worker_info",
            "Always 1: versions of the worker and of its simulator.",
            ("version", "simulator_version"),
            registry=registry,
        )
        info.labels(version("remy-farm-worker"), version("remy-simulator")).set(1)
        Gauge(
            "remy_farm_worker_threads",
            "Threads that this worker simulates with.",
            registry=registry,
        ).set(threads)
        self._connected = Gauge(
            "remy_farm_worker_connected",
            "Whether this worker is connected to its coordinator: 1 or 0.",
            registry=registry,
        )
        self._connections = Counter(
            "remy_farm_worker_connections_total",
            "How often this worker connected to its coordinator.",
            registry=registry,
        )
        self._running = Gauge(
            "remy_farm_worker_tasks_running", "Tasks being simulated.", registry=registry
        )
        self._tasks = Counter(
            "remy_farm_worker_tasks_total",
            "Tasks that ended on this worker, by how they did.",
            ("end",),
            registry=registry,
        )
        for end in TaskEnd:
            self._tasks.labels(end)
        self._durations = Histogram(
            "remy_farm_worker_task_duration_seconds",
            "Wall time of simulating a task.",
            buckets=_TASK_BUCKETS_SECONDS,
            registry=registry,
        )
        self._cpu_seconds = Counter(
            "remy_farm_worker_cpu_seconds_total", "CPU time of simulating tasks.", registry=registry
        )
        self._evaluations = Counter(
            "remy_farm_worker_evaluations_total",
            "Simulations of one specimen under one candidate.",
            registry=registry,
        )
        self._packets = Counter(
            "remy_farm_worker_simulated_packets_total",
            "Packets sent in these simulations.",
            registry=registry,
        )

    def connected(self) -> None:
        """The coordinator has welcomed this worker."""
        self._connected.set(1)
        self._connections.inc()

    def disconnected(self) -> None:
        """The stream to the coordinator is gone."""
        self._connected.set(0)

    def task_started(self) -> None:
        """A thread has begun to simulate a task."""
        self._running.inc()

    def task_done(
        self, *, wall_seconds: float, cpu_seconds: float, evaluations: int, packets: int
    ) -> None:
        """The task of a thread was simulated."""
        self._running.dec()
        self._tasks.labels(TaskEnd.DONE).inc()
        self._durations.observe(wall_seconds)
        self._cpu_seconds.inc(max(cpu_seconds, 0.0))
        self._evaluations.inc(evaluations)
        self._packets.inc(packets)

    def task_refused(self) -> None:
        """The simulator would not simulate the task of a thread."""
        self._running.dec()
        self._tasks.labels(TaskEnd.REFUSED).inc()

    def task_interrupted(self) -> None:
        """A thread has ended a task early, whose result was not wanted any more."""
        self._running.dec()
        self._tasks.labels(TaskEnd.CANCELLED).inc()

    def task_dropped(self, end: TaskEnd) -> None:
        """A task ended that no thread had begun with."""
        self._tasks.labels(end).inc()


@contextmanager
def served(metrics: WorkerMetrics, host: str, port: int) -> Iterator[int]:
    """Answers GET /metrics while it lasts; yields the port, which may be asked for as 0.

    Raises OSError if it cannot listen there.
    """
    server, thread = start_http_server(port, host, metrics.registry)
    reached = int(server.server_address[1])
    _log.info("serving metrics", address=f"{host}:{reached}")
    try:
        yield reached
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
