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

# Suppress the `_created` series of each counter, which nothing uses.
disable_created_metrics()  # type: ignore[no-untyped-call]

_log = structlog.get_logger()

_TASK_BUCKETS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class TaskEnd(StrEnum):
    """How a task ended on this worker."""

    DONE = "done"
    #: The simulator rejected it.
    REFUSED = "refused"
    #: The worker returned it because it shuts down.
    RETURNED = "returned"
    #: Its result was no longer needed.
    CANCELLED = "cancelled"


class WorkerMetrics:
    """The metrics of one worker. Thread-safe."""

    def __init__(self, threads: int) -> None:
        """`threads` is the number of simulation threads."""
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
            "Simulation threads of this worker.",
            registry=registry,
        ).set(threads)
        self._connected = Gauge(
            "remy_farm_worker_connected",
            "Whether this worker is connected to its coordinator: 1 or 0.",
            registry=registry,
        )
        self._connections = Counter(
            "remy_farm_worker_connections_total",
            "Connections of this worker to its coordinator.",
            registry=registry,
        )
        self._running = Gauge(
            "remy_farm_worker_tasks_running", "Tasks being simulated.", registry=registry
        )
        self._tasks = Counter(
            "remy_farm_worker_tasks_total",
            "Tasks that ended on this worker, by how they ended.",
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
        """Records that the coordinator accepted this worker."""
        self._connected.set(1)
        self._connections.inc()

    def disconnected(self) -> None:
        """Records that the stream to the coordinator is closed."""
        self._connected.set(0)

    def task_started(self) -> None:
        """Records that a thread started a task."""
        self._running.inc()

    def task_done(
        self, *, wall_seconds: float, cpu_seconds: float, evaluations: int, packets: int
    ) -> None:
        """Records that a thread finished a task, and its cost."""
        self._running.dec()
        self._tasks.labels(TaskEnd.DONE).inc()
        self._durations.observe(wall_seconds)
        self._cpu_seconds.inc(max(cpu_seconds, 0.0))
        self._evaluations.inc(evaluations)
        self._packets.inc(packets)

    def task_refused(self) -> None:
        """Records that the simulator rejected a thread's task."""
        self._running.dec()
        self._tasks.labels(TaskEnd.REFUSED).inc()

    def task_interrupted(self) -> None:
        """Records that a thread ended a cancelled task early."""
        self._running.dec()
        self._tasks.labels(TaskEnd.CANCELLED).inc()

    def task_dropped(self, end: TaskEnd) -> None:
        """Records the end of a task that no thread had started."""
        self._tasks.labels(end).inc()


@contextmanager
def served(metrics: WorkerMetrics, host: str, port: int) -> Iterator[int]:
    """Serves GET /metrics inside the context, and yields the port (useful if `port` is 0).

    Raises OSError if the address cannot be used.
    """
    server, thread = start_http_server(port, host, metrics.registry)
    bound_port = int(server.server_address[1])
    _log.info("serving metrics", address=f"{host}:{bound_port}")
    try:
        yield bound_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
