"""Catalogue of all exported metrics: name, type, help text, labels."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from remy_farm.evaluation.scheduler.records import DURATION_BUCKETS_SECONDS

PREFIX = "remy_farm_"


class Kind(Enum):
    """Prometheus metric types in use."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Metric:
    """A metric's full name, type, help text and labels."""

    #: Ends in the unit; a counter also in `_total`. A histogram's name has no `_bucket` suffix.
    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    #: Upper bounds of a histogram's buckets, in the metric's unit, without infinity.
    buckets: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.name.startswith(PREFIX):
            raise ValueError(f"the metric {self.name} must begin with {PREFIX}")
        if (self.kind is Kind.COUNTER) != self.name.endswith("_total"):
            raise ValueError(
                f"the metric {self.name} must end in _total if and only if it is a counter"
            )
        if (self.kind is Kind.HISTOGRAM) != bool(self.buckets):
            raise ValueError(
                f"the metric {self.name} must have buckets if and only if it is a histogram"
            )

    @property
    def series(self) -> tuple[str, ...]:
        """Names of the metric's time series."""
        if self.kind is Kind.HISTOGRAM:
            return tuple(self.name + suffix for suffix in ("_bucket", "_count", "_sum"))
        return (self.name,)


def counter(name: str, text: str, *labels: str) -> Metric:
    """Declares a counter."""
    return Metric(PREFIX + name, Kind.COUNTER, text, labels)


def gauge(name: str, text: str, *labels: str) -> Metric:
    """Declares a gauge."""
    return Metric(PREFIX + name, Kind.GAUGE, text, labels)


def histogram(name: str, text: str, *labels: str, buckets: tuple[float, ...]) -> Metric:
    """Declares a histogram."""
    return Metric(PREFIX + name, Kind.HISTOGRAM, text, labels, buckets)


def _declared_beside(*groups: tuple[Metric, ...]) -> tuple[Metric, ...]:
    """Returns the metrics declared so far that are in none of these groups, in order."""
    earlier = {metric for group in groups for metric in group}
    declared = (each for each in globals().values() if isinstance(each, Metric))
    return tuple(metric for metric in declared if metric not in earlier)


WORKERS_CONNECTED = gauge("workers_connected", "Number of connected workers.")
WORKERS_BUSY = gauge("workers_busy", "Connected workers with at least one task.")
WORKERS_SILENT = gauge("workers_silent", "Connected workers whose heartbeat is overdue.")
WORKERS_QUARANTINED = gauge(
    "workers_quarantined", "Workers excluded from tasks because of wrong results."
)
THREADS_CONNECTED = gauge("threads_connected", "Simulation threads of all connected workers.")
TASKS_WAITING = gauge("tasks_waiting", "Tasks waiting for a worker.")
TASKS_RUNNING = gauge("tasks_running", "Tasks leased to a worker.")

TASK_DURATION = histogram(
    "task_duration_seconds",
    "Time from the assignment of a task to the receipt of its result.",
    buckets=DURATION_BUCKETS_SECONDS,
)
TASK_QUEUE_TIME = histogram(
    "task_queue_seconds",
    "Time that a ready task waited for its assignment to a worker.",
    buckets=DURATION_BUCKETS_SECONDS,
)
TASKS_ASSIGNED = counter(
    "tasks_assigned_total", "Task assignments to workers, including reassignments."
)
TASKS = counter("tasks_total", "Completed tasks.")
TASKS_HEDGED = counter(
    "tasks_hedged_total", "Late tasks that were also assigned to a second worker."
)
TASKS_QUARANTINED = counter(
    "tasks_quarantined_total", "Tasks given up because they repeatedly crashed their workers."
)
RESULTS_DUPLICATE = counter(
    "results_duplicate_total", "Results received for tasks that were already complete."
)
RESULTS_REJECTED = counter(
    "results_rejected_total", "Results that failed validation, by reason.", "reason"
)
LEASES_ENDED = counter(
    "leases_ended_total",
    "Leases that ended without an accepted result, by reason.",
    "reason",
)
WORKERS_JOINED = counter("workers_joined_total", "Worker connections.")
WORKER_DEPARTURES = counter(
    "worker_departures_total", "Worker disconnections, by reason.", "reason"
)

EVALUATIONS = counter(
    "evaluations_total", "Completed simulations (one candidate on one specimen each)."
)
SIMULATED_PACKETS = counter("simulated_packets_total", "Packets sent in completed simulations.")
SIMULATED_SECONDS = counter(
    "simulated_seconds_total", "Simulated network time of completed simulations."
)
EVALUATION_CPU_SECONDS = counter(
    "evaluation_cpu_seconds_total", "CPU time of completed simulations."
)
REQUESTS_FAILED = counter(
    "evaluation_requests_failed_total", "Evaluation requests that ended without an outcome."
)

EVALUATION_METRICS = _declared_beside()


# Metrics of jobs.
# #
# Metrics of one job have its id and name as labels. They are exported while the job is unfinished
# or
# among the newest finished jobs.


_JOB = ("job_id", "job_name")

JOBS = gauge("jobs", "Number of jobs by state.", "state")

JOB_INFO = gauge(
    "job_info",
    "Constant 1 with a job's fixed attributes as labels. `fork_of` is the id of the job that it "
    "was forked from.",
    *_JOB,
    "owner",
    "campaign",
    "strategy",
    "fork_of",
)
JOB_STATE = gauge(
    "job_state", "Constant 1 with the job's present state as a label.", *_JOB, "state"
)
JOB_PRIORITY = gauge("job_priority", "Priority of the job; higher runs first.", *_JOB)
JOB_SCORE = gauge(
    "job_score", "Score of the table under optimization, in units of the job's objective.", *_JOB
)
JOB_SCORE_STANDARD_ERROR = gauge(
    "job_score_standard_error", "Standard error over specimens of `job_score`.", *_JOB
)
JOB_VALIDATED_SCORE = gauge(
    "job_validated_score", "Score of the published table on validation specimens.", *_JOB
)
JOB_VALIDATED_SCORE_STANDARD_ERROR = gauge(
    "job_validated_score_standard_error", "Standard error of `job_validated_score`.", *_JOB
)
JOB_EPOCH_GAIN = gauge(
    "job_epoch_gain",
    "Score gain of the last epoch on validation specimens.",
    *_JOB,
)
JOB_EPOCH_GAIN_STANDARD_ERROR = gauge(
    "job_epoch_gain_standard_error", "Standard error of `job_epoch_gain`.", *_JOB
)
JOB_EPOCHS_WITHOUT_GAIN = gauge(
    "job_epochs_without_gain", "Number of latest consecutive epochs without gain.", *_JOB
)
JOB_EPOCH = gauge("job_epoch", "Number of the running epoch, from 0.", *_JOB)
JOB_STEP = gauge("job_step", "Steps completed since the job started.", *_JOB)
JOB_RULES = gauge("job_rules", "Number of rules of the table under optimization.", *_JOB)
JOB_CANDIDATES = gauge("job_candidates", "Number of candidates of the running step.", *_JOB)
JOB_CANDIDATES_LEFT = gauge(
    "job_candidates_left", "Candidates of the running step that are not yet evaluated.", *_JOB
)
JOB_DONE_RATIO = gauge(
    "job_done_ratio", "Completed fraction of a search of fixed length, 0 to 1.", *_JOB
)
JOB_ETA_SECONDS = gauge("job_eta_seconds", "Estimated time left.", *_JOB)
JOB_WORKERS = gauge(
    "job_workers", "Workers that returned results for the job in about the last minute.", *_JOB
)
JOB_WORKERS_LOST = counter(
    "job_workers_lost_total",
    "Workers lost without a goodbye while dedicated to the job or holding its tasks.",
    *_JOB,
)
JOB_WORKER_PODS = gauge(
    "job_worker_pods",
    "Worker pods of the job, desired and existing, by phase.",
    *_JOB,
    "phase",
)
JOB_WORKER_PODS_ENDED = counter(
    "job_worker_pods_ended_total",
    "Worker pods that were preempted or failed, by reason.",
    *_JOB,
    "reason",
)
JOB_CPU_SECONDS = counter(
    "job_cpu_seconds_total", "CPU time of the job's evaluations since it started.", *_JOB
)
JOB_RUN_SECONDS = counter("job_run_seconds_total", "Wall-clock time that the job has run.", *_JOB)
JOB_COST = counter(
    "job_cost_total",
    "Estimated cost: CPU time at the coordinator's price per CPU-hour, in that currency.",
    *_JOB,
)
JOB_EVALUATIONS = counter(
    "job_evaluations_total",
    "Completed simulations of the job since it started.",
    *_JOB,
)
JOB_SIMULATED_PACKETS = counter(
    "job_simulated_packets_total", "Packets sent in the job's completed simulations.", *_JOB
)
JOB_RECOVERIES = counter(
    "job_recoveries_total",
    "Number of times that the job was recovered after a coordinator crash.",
    *_JOB,
)
JOB_LAST_EVALUATION = gauge(
    "job_last_evaluation_timestamp_seconds",
    "Unix time of the job's last evaluation result, or of its first request before that.",
    *_JOB,
)
JOB_LAST_CHECKPOINT = gauge(
    "job_last_checkpoint_timestamp_seconds",
    "Unix time of the job's last durable checkpoint, or of the acquisition of the job before that.",
    *_JOB,
)
JOB_CHECKPOINT_BYTES = gauge("job_checkpoint_bytes", "Size of the job's last checkpoint.", *_JOB)

JOB_METRICS = _declared_beside(EVALUATION_METRICS)


_CALL_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_METHOD = ("grpc_service", "grpc_method")

BUILD_INFO = gauge(
    "build_info",
    "Constant 1 with the versions of coordinator, simulator and Python as labels.",
    "version",
    "simulator_version",
    "python_version",
)
CERTIFICATE_EXPIRY = gauge(
    "certificate_expiry_timestamp_seconds",
    "Unix time at which a certificate in use expires.",
    "use",
)
GRPC_HANDLED = counter(
    "grpc_server_handled_total", "Completed gRPC calls, by status code.", *_METHOD, "grpc_code"
)
GRPC_DURATION = histogram(
    "grpc_server_handling_seconds",
    "Duration of unary gRPC calls.",
    *_METHOD,
    buckets=_CALL_BUCKETS,
)
GRPC_OPEN = gauge("grpc_server_open_calls", "gRPC calls in progress.", *_METHOD)
STEP_PHASE_SECONDS = counter(
    "step_phase_seconds_total",
    "Time spent in steps, by phase: waiting, transfer and simulation are summed over tasks; store "
    "and search are coordinator time.",
    "phase",
)

SERVER_METRICS = _declared_beside(EVALUATION_METRICS, JOB_METRICS)


_STORE_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
_SIZE_BUCKETS = tuple(float(1 << power) for power in range(10, 27, 2))

STORE_INFO = gauge(
    "store_info",
    "Constant 1 with the kind and version of the store's database as labels.",
    "kind",
    "version",
)
STORE_DURABLE = gauge(
    "store_durable", "1 if acknowledged commits survive a crash of the store, else 0."
)
STORE_AVAILABLE = gauge("store_available", "1 if the last store operation succeeded, else 0.")
STORE_OPERATION = histogram(
    "store_operation_duration_seconds",
    "Duration of store operations, by operation.",
    "operation",
    buckets=_STORE_BUCKETS,
)
STORE_ERRORS = counter("store_errors_total", "Failed store operations, by operation.", "operation")
STORE_BYTES = gauge(
    "store_bytes",
    "Space that the store reports: used `memory` and `memory_limit` (commits fail at the limit), "
    "size of its files on `disk`, and `disk_free`.",
    "kind",
)
CHECKPOINT_DURATION = histogram(
    "checkpoint_duration_seconds",
    "Duration of commits with a snapshot, until they are durable.",
    buckets=_STORE_BUCKETS,
)
CHECKPOINT_SIZE = histogram(
    "checkpoint_size_bytes", "Size of committed snapshots.", buckets=_SIZE_BUCKETS
)
CHECKPOINT_FAILURES = counter(
    "checkpoint_failures_total", "Failed commits with a snapshot, by reason.", "reason"
)
FENCING_CONFLICTS = counter(
    "fencing_conflicts_total",
    "Operations rejected because another coordinator holds a newer fencing token.",
)

MIRROR_BEHIND_SECONDS = gauge(
    "mirror_behind_seconds",
    "Age of the oldest change that the mirror lacks; 0 if it is up to date.",
)
MIRROR_FAILURES = counter("mirror_failures_total", "Failed writes to the mirror.")

STORE_METRICS = _declared_beside(EVALUATION_METRICS, JOB_METRICS, SERVER_METRICS)


METRICS = (*JOB_METRICS, *EVALUATION_METRICS, *STORE_METRICS, *SERVER_METRICS)
