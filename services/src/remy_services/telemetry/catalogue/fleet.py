"""Metrics of evaluations and of those who make them, as the coordinator sees it."""

from __future__ import annotations

from remy_services.fleet.board.counters import DURATION_BUCKETS_SECONDS
from remy_services.telemetry.catalogue.metric import Metric, counter, gauge, histogram

WORKERS_CONNECTED = gauge("workers_connected", "Workers that are connected.")
WORKERS_BUSY = gauge("workers_busy", "Connected workers that have a task.")
WORKERS_SILENT = gauge(
    "workers_silent", "Connected workers that have not been heard of for longer than they should."
)
WORKERS_QUARANTINED = gauge(
    "workers_quarantined", "Workers that get no tasks because their results were wrong."
)
THREADS_CONNECTED = gauge("threads_connected", "Simulating threads of all connected workers.")
TASKS_WAITING = gauge("tasks_waiting", "Tasks that no worker has yet.")
TASKS_RUNNING = gauge("tasks_running", "Tasks that a worker has.")

TASK_DURATION = histogram(
    "task_duration_seconds",
    "Time from when a worker got a task to when its result was here.",
    buckets=DURATION_BUCKETS_SECONDS,
)
TASK_QUEUE_TIME = histogram(
    "task_queue_seconds",
    "Time from when a task could be given out to when a worker got it.",
    buckets=DURATION_BUCKETS_SECONDS,
)
TASKS_ASSIGNED = counter("tasks_assigned_total", "Tasks given to workers, repeats included.")
TASKS = counter("tasks_total", "Tasks whose outcome is known.")
TASKS_HEDGED = counter("tasks_hedged_total", "Tasks given to another worker too, being late.")
TASKS_QUARANTINED = counter(
    "tasks_quarantined_total", "Tasks that were given up because they kept ending their workers."
)
RESULTS_DUPLICATE = counter(
    "results_duplicate_total", "Results that came when the task's outcome was known."
)
RESULTS_REJECTED = counter(
    "results_rejected_total", "Results that failed their checks, by what was wrong.", "reason"
)
LEASES_ENDED = counter(
    "leases_ended_total",
    "Tasks that a worker had and that ended without an answer that was wanted, by reason.",
    "reason",
)
WORKERS_JOINED = counter("workers_joined_total", "Workers that connected.")
WORKER_DEPARTURES = counter(
    "worker_departures_total", "Workers that left, by how they did.", "reason"
)

EVALUATIONS = counter(
    "evaluations_total", "Simulations of one specimen under one candidate that were finished."
)
SIMULATED_PACKETS = counter("simulated_packets_total", "Packets sent in these simulations.")
SIMULATED_SECONDS = counter("simulated_seconds_total", "Network time simulated in them.")
EVALUATION_CPU_SECONDS = counter("evaluation_cpu_seconds_total", "CPU time that they took.")
REQUESTS_FAILED = counter(
    "evaluation_requests_failed_total", "Requests of designs that ended without an outcome."
)

METRICS: tuple[Metric, ...] = (
    WORKERS_CONNECTED,
    WORKERS_BUSY,
    WORKERS_SILENT,
    WORKERS_QUARANTINED,
    THREADS_CONNECTED,
    TASKS_WAITING,
    TASKS_RUNNING,
    TASK_DURATION,
    TASK_QUEUE_TIME,
    TASKS_ASSIGNED,
    TASKS,
    TASKS_HEDGED,
    TASKS_QUARANTINED,
    RESULTS_DUPLICATE,
    RESULTS_REJECTED,
    LEASES_ENDED,
    WORKERS_JOINED,
    WORKER_DEPARTURES,
    EVALUATIONS,
    SIMULATED_PACKETS,
    SIMULATED_SECONDS,
    EVALUATION_CPU_SECONDS,
    REQUESTS_FAILED,
)
