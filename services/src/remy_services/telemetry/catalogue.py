"""Every metric that a coordinator exports: name, type, meaning, labels."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from remy_farm.evaluation.scheduler.records import DURATION_BUCKETS_SECONDS

PREFIX = "remy_farm_"


class Kind(Enum):
    """The types of the Prometheus text format that are used here."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Metric:
    """A metric's name, as queries have it, and its meaning."""

    #: Ends in its unit, a counter's in `_total`; a histogram's without `_bucket`.
    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    #: Upper bounds of a histogram's buckets, in the metric's unit, without infinity.
    buckets: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.name.startswith(PREFIX):
            raise ValueError(f"the metric {self.name} does not begin with {PREFIX}")
        if (self.kind is Kind.COUNTER) != self.name.endswith("_total"):
            raise ValueError(f"the metric {self.name} must end in _total exactly if it counts")
        if (self.kind is Kind.HISTOGRAM) != bool(self.buckets):
            raise ValueError(f"the metric {self.name} needs buckets exactly if it is a histogram")

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its time series."""
        if self.kind is Kind.HISTOGRAM:
            return tuple(self.name + suffix for suffix in ("_bucket", "_count", "_sum"))
        return (self.name,)


def counter(name: str, text: str, *labels: str) -> Metric:
    """A number that only grows, from 0 when the process starts."""
    return Metric(PREFIX + name, Kind.COUNTER, text, labels)


def gauge(name: str, text: str, *labels: str) -> Metric:
    """A number that goes up and down."""
    return Metric(PREFIX + name, Kind.GAUGE, text, labels)


def histogram(name: str, text: str, *labels: str, buckets: tuple[float, ...]) -> Metric:
    """How often values fell into ranges."""
    return Metric(PREFIX + name, Kind.HISTOGRAM, text, labels, buckets)


def _declared_beside(*groups: tuple[Metric, ...]) -> tuple[Metric, ...]:
    """The metrics of this module up to now that are in none of these groups, in their order."""
    earlier = {metric for group in groups for metric in group}
    declared = (each for each in globals().values() if isinstance(each, Metric))
    return tuple(metric for metric in declared if metric not in earlier)


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
    "worker_departures_total", "Workers that left, by why or how they did.", "reason"
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

EVALUATION_METRICS = _declared_beside()


# Metrics of jobs.
#
# Those of one job are labelled with its id and its name. They are there while the job is, and for
# finished jobs while they are among the newest.


_JOB = ("job_id", "job_name")

JOBS = gauge("jobs", "Jobs by state.", "state")

JOB_INFO = gauge(
    "job_info",
    "Always 1: what is fixed about a job. `fork_of` is the id of the job that it began from.",
    *_JOB,
    "owner",
    "campaign",
    "strategy",
    "fork_of",
)
JOB_STATE = gauge("job_state", "Always 1: the state that the job is in.", *_JOB, "state")
JOB_PRIORITY = gauge("job_priority", "Jobs of higher priority run first.", *_JOB)
JOB_SCORE = gauge(
    "job_score", "Score of the table being worked on, in units of the job's objective.", *_JOB
)
JOB_SCORE_STANDARD_ERROR = gauge(
    "job_score_standard_error", "Standard error of that score, over specimens.", *_JOB
)
JOB_VALIDATED_SCORE = gauge(
    "job_validated_score", "Score of the published table on validation specimens.", *_JOB
)
JOB_VALIDATED_SCORE_STANDARD_ERROR = gauge(
    "job_validated_score_standard_error", "Standard error of that score.", *_JOB
)
JOB_EPOCH_GAIN = gauge(
    "job_epoch_gain",
    "What the last epoch gained on validation specimens, in units of score.",
    *_JOB,
)
JOB_EPOCH_GAIN_STANDARD_ERROR = gauge(
    "job_epoch_gain_standard_error", "Standard error of that gain.", *_JOB
)
JOB_EPOCHS_WITHOUT_GAIN = gauge(
    "job_epochs_without_gain", "Epochs in a row, up to the last, that brought no gain.", *_JOB
)
JOB_EPOCH = gauge("job_epoch", "The running epoch, from 0.", *_JOB)
JOB_STEP = gauge("job_step", "Steps made since the job began.", *_JOB)
JOB_RULES = gauge("job_rules", "Rules of the table being worked on.", *_JOB)
JOB_CANDIDATES = gauge("job_candidates", "Candidates of the running step.", *_JOB)
JOB_CANDIDATES_LEFT = gauge(
    "job_candidates_left", "Candidates of the running step that are not done.", *_JOB
)
JOB_DONE_RATIO = gauge(
    "job_done_ratio", "How much of a search of fixed length is done, from 0 to 1.", *_JOB
)
JOB_ETA_SECONDS = gauge("job_eta_seconds", "A guess at the time left.", *_JOB)
JOB_WORKERS = gauge(
    "job_workers", "Workers that evaluated something for the job in the last minute or so.", *_JOB
)
JOB_WORKERS_LOST = counter(
    "job_workers_lost_total",
    "Workers that left without a goodbye and served the job only, or had tasks of it.",
    *_JOB,
)
JOB_WORKER_PODS = gauge(
    "job_worker_pods",
    "Pods of the job's workers that Kubernetes is asked for or has.",
    *_JOB,
    "phase",
)
JOB_WORKER_PODS_ENDED = counter(
    "job_worker_pods_ended_total",
    "Pods of workers that were preempted, or failed.",
    *_JOB,
    "reason",
)
JOB_CPU_SECONDS = counter(
    "job_cpu_seconds_total", "CPU time of the job's evaluations since it began.", *_JOB
)
JOB_RUN_SECONDS = counter("job_run_seconds_total", "Time that the job has run for.", *_JOB)
JOB_COST = counter(
    "job_cost_total",
    "CPU time by the coordinator's price of a CPU-hour, in the currency of that price.",
    *_JOB,
)
JOB_EVALUATIONS = counter(
    "job_evaluations_total",
    "Simulations of one specimen under one candidate since the job began.",
    *_JOB,
)
JOB_SIMULATED_PACKETS = counter(
    "job_simulated_packets_total", "Packets sent in these simulations.", *_JOB
)
JOB_RECOVERIES = counter(
    "job_recoveries_total",
    "How often the job went on after its coordinator had ended unexpectedly.",
    *_JOB,
)
JOB_LAST_EVALUATION = gauge(
    "job_last_evaluation_timestamp_seconds",
    "Unix time of the last result of the job's evaluations; before the first, of its request.",
    *_JOB,
)
JOB_LAST_CHECKPOINT = gauge(
    "job_last_checkpoint_timestamp_seconds",
    "Unix time of the job's last durable checkpoint; before the first, of when the job was taken.",
    *_JOB,
)
JOB_CHECKPOINT_BYTES = gauge("job_checkpoint_bytes", "Size of the job's last checkpoint.", *_JOB)

JOB_METRICS = _declared_beside(EVALUATION_METRICS)


_CALL_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_METHOD = ("grpc_service", "grpc_method")

BUILD_INFO = gauge(
    "build_info",
    "Always 1: versions of the coordinator, the simulator and Python.",
    "version",
    "simulator_version",
    "python_version",
)
CERTIFICATE_EXPIRY = gauge(
    "certificate_expiry_timestamp_seconds",
    "Unix time at which a certificate that is in use ends.",
    "use",
)
GRPC_HANDLED = counter(
    "grpc_server_handled_total", "Calls that ended, by status code.", *_METHOD, "grpc_code"
)
GRPC_DURATION = histogram(
    "grpc_server_handling_seconds",
    "How long calls with one response took; streams last as long as their clients like.",
    *_METHOD,
    buckets=_CALL_BUCKETS,
)
GRPC_OPEN = gauge("grpc_server_open_calls", "Calls that are being served.", *_METHOD)
STEP_PHASE_SECONDS = counter(
    "step_phase_seconds_total",
    "Where the time of steps went: waiting, transfer and simulation in seconds of tasks, store and "
    "search in seconds of the coordinator.",
    "phase",
)

SERVER_METRICS = _declared_beside(EVALUATION_METRICS, JOB_METRICS)


_STORE_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
_SIZE_BUCKETS = tuple(float(1 << power) for power in range(10, 27, 2))

STORE_INFO = gauge("store_info", "Always 1: the database and its version.", "kind", "version")
STORE_DURABLE = gauge(
    "store_durable", "Whether acknowledged commits survive the loss of the store: 1 or 0."
)
STORE_AVAILABLE = gauge(
    "store_available", "Whether the store took the last thing that was asked of it: 1 or 0."
)
STORE_OPERATION = histogram(
    "store_operation_duration_seconds",
    "Round trips to the store, by operation.",
    "operation",
    buckets=_STORE_BUCKETS,
)
STORE_ERRORS = counter(
    "store_errors_total", "Operations of the store that failed, by operation.", "operation"
)
STORE_BYTES = gauge(
    "store_bytes",
    "What the store takes and has room for, as far as it says: `memory` up to `memory_limit`, from "
    "which on it takes no commits; its files on `disk`, and `disk_free`.",
    "kind",
)
CHECKPOINT_DURATION = histogram(
    "checkpoint_duration_seconds",
    "Commits that held a snapshot: from the call to the durable answer.",
    buckets=_STORE_BUCKETS,
)
CHECKPOINT_SIZE = histogram("checkpoint_size_bytes", "Snapshots in commits.", buckets=_SIZE_BUCKETS)
CHECKPOINT_FAILURES = counter(
    "checkpoint_failures_total", "Commits with a snapshot that failed, by reason.", "reason"
)
FENCING_CONFLICTS = counter(
    "fencing_conflicts_total", "Operations refused because another coordinator has the job."
)

MIRROR_BEHIND_SECONDS = gauge(
    "mirror_behind_seconds",
    "For how long the oldest change that the mirror lacks has waited; 0 if it lacks none.",
)
MIRROR_FAILURES = counter("mirror_failures_total", "Writes to the mirror that failed.")

STORE_METRICS = _declared_beside(EVALUATION_METRICS, JOB_METRICS, SERVER_METRICS)


METRICS = (*JOB_METRICS, *EVALUATION_METRICS, *STORE_METRICS, *SERVER_METRICS)
