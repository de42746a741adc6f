"""Reads metric values of jobs, evaluator and scheduler at scrape time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.registry import Collector

from remy_farm.evaluation.interface import EvaluatorStatus
from remy_farm.evaluation.scheduler.records import Durations, SchedulerSnapshot
from remy_farm.specification.schema import fields_of, is_unset
from remy_proto.v1 import job_pb2, progress_pb2, spec_pb2
from remy_services.jobs.states import FINAL, TRANSITIONS, name_of
from remy_services.telemetry import catalogue
from remy_services.telemetry.catalogue import Kind, Metric

_Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


@dataclass(frozen=True, slots=True)
class Sample:
    """Value of one time series."""

    metric: Metric
    value: float
    #: Label values, in the order of the metric's labels.
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Distribution:
    """Value of a histogram without labels."""

    metric: Metric
    durations: Durations


Reading = Iterable[Sample | Distribution]
Reader = Callable[[], Reading]


class SampledCollector(Collector):
    """Exports the samples that a function returns at each scrape. Omitted series disappear."""

    def __init__(self, metrics: Sequence[Metric], read: Reader) -> None:
        self._metrics = tuple(metrics)
        self._read = read

    def describe(self) -> Iterable[_Family]:
        return [_family(metric) for metric in self._metrics]

    def collect(self) -> Iterable[_Family]:
        families = {metric.name: _family(metric) for metric in self._metrics}
        for entry in self._read():
            family = families[entry.metric.name]
            if isinstance(entry, Distribution):
                family.add_metric((), _cumulative(entry), entry.durations.seconds)  # type: ignore[arg-type]
            else:
                family.add_metric(entry.labels, entry.value)  # type: ignore[arg-type, call-arg]
        return families.values()


def _cumulative(distribution: Distribution) -> list[tuple[str, float]]:
    """Returns cumulative counts by upper bound."""
    names = (*map(str, distribution.metric.buckets), "+Inf")
    return list(zip(names, accumulate(distribution.durations.counts), strict=True))


_FAMILIES: dict[Kind, type[_Family]] = {
    Kind.COUNTER: CounterMetricFamily,
    Kind.GAUGE: GaugeMetricFamily,
    Kind.HISTOGRAM: HistogramMetricFamily,
}


def _family(metric: Metric) -> _Family:
    return _FAMILIES[metric.kind](metric.name, metric.help, labels=metric.labels)


@dataclass(frozen=True)
class Checkpoint:
    """The newest durable checkpoint of a job."""

    #: Time of the checkpoint; before the first one, time at which this coordinator acquired the
    #: job.
    unix_seconds: float
    #: Size of the snapshot; 0 before the first.
    size_bytes: int = 0


@dataclass(frozen=True)
class WorkerPods:
    """Counts of a job's worker pods: present ones by phase, ended ones by reason."""

    by_phase: Mapping[str, int]
    ended: Mapping[str, int]


class JobActivity:
    """Times of results and checkpoints by job id. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """`clock` returns Unix time in seconds."""
        self._clock = clock
        self._results: dict[str, float] = {}
        self._checkpoints: dict[str, Checkpoint] = {}
        #: Counts of lost workers and of worker pods, by job id.
        self.workers_lost: Mapping[str, int] = {}
        self.worker_pods: Mapping[str, WorkerPods] = {}

    def requested(self, job_id: str) -> None:
        """Starts the wait for the job's first result."""
        self._results.setdefault(job_id, self._clock())

    def evaluated(self, job_id: str) -> None:
        """Records a result of the job."""
        self._results[job_id] = self._clock()

    def taken(self, job_id: str) -> None:
        """Records that this coordinator acquired the job."""
        self._checkpoints.setdefault(job_id, Checkpoint(self._clock()))

    def checkpointed(self, job_id: str, size_bytes: int) -> None:
        """Records a durable checkpoint of the job."""
        self._checkpoints[job_id] = Checkpoint(self._clock(), size_bytes)

    def last_result(self, job_id: str) -> float | None:
        """Returns the Unix time of the last result, or None before the job's first request."""
        return self._results.get(job_id)

    def last_checkpoint(self, job_id: str) -> Checkpoint | None:
        """Returns the last checkpoint, or None if this coordinator has not acquired the job."""
        return self._checkpoints.get(job_id)

    def keep_only(self, job_ids: Iterable[str]) -> None:
        """Drops all other jobs."""
        kept = set(job_ids)
        for known in (self._results, self._checkpoints):
            for job_id in [each for each in tuple(known) if each not in kept]:
                known.pop(job_id, None)


#: Known reasons for worker disconnections and for ended leases.
DEPARTURES = ("goodbye", "idle", "lost", "quarantined", "signal", "silent", "spot_interruption")
LEASE_ENDS = (
    *("lost", "goodbye", "silent", "returned"),
    *("bad result", "quarantined", "withdrawn", "done elsewhere", "divided"),
)
_REJECTION_REASONS = ("digest", "encoding", "impossible")


def evaluator_samples(status: EvaluatorStatus) -> Iterator[Sample]:
    """Yields the counts of workers, threads and tasks."""
    yield Sample(catalogue.WORKERS_CONNECTED, status.workers)
    yield Sample(catalogue.WORKERS_BUSY, status.busy_workers)
    yield Sample(catalogue.WORKERS_QUARANTINED, status.quarantined_workers)
    yield Sample(catalogue.THREADS_CONNECTED, status.threads)
    yield Sample(catalogue.TASKS_WAITING, status.tasks_waiting)
    yield Sample(catalogue.TASKS_RUNNING, status.tasks_running)


def scheduler_samples(snapshot: SchedulerSnapshot) -> Iterator[Sample | Distribution]:
    """Yields the scheduler's counters of tasks, leases and workers."""
    counts = snapshot.counts
    yield Sample(catalogue.WORKERS_SILENT, snapshot.silent_workers)
    yield Sample(catalogue.TASKS_ASSIGNED, counts.tasks_assigned)
    yield Sample(catalogue.TASKS, counts.tasks_done)
    yield Sample(catalogue.TASKS_HEDGED, counts.hedged_tasks)
    yield Sample(catalogue.TASKS_QUARANTINED, counts.quarantined_tasks)
    yield Sample(catalogue.RESULTS_DUPLICATE, counts.duplicate_results)
    yield Sample(catalogue.WORKERS_JOINED, counts.workers_joined)
    yield from _by_reason(catalogue.WORKER_DEPARTURES, counts.workers_left, DEPARTURES)
    yield from _by_reason(catalogue.LEASES_ENDED, counts.leases_ended, LEASE_ENDS)
    yield from _by_reason(catalogue.RESULTS_REJECTED, counts.bad_results, _REJECTION_REASONS)
    yield Distribution(catalogue.TASK_DURATION, counts.task_durations)
    yield Distribution(catalogue.TASK_QUEUE_TIME, counts.queue_times)


def _by_reason(metric: Metric, counts: Mapping[str, int], usual: Iterable[str]) -> Iterator[Sample]:
    """Yields a sample per reason.

    Usual reasons are exported at 0 from the start, so that `increase()` sees their first count.
    """
    for reason in sorted({*usual, *counts}):
        yield Sample(metric, counts.get(reason, 0), (reason.replace(" ", "_"),))


#: Number of finished jobs, newest first, that have per-job metrics.
FINISHED_JOBS_SHOWN = 50


def job_samples(
    all_jobs: Iterable[job_pb2.Job],
    activity: JobActivity,
    *,
    finished_shown: int = FINISHED_JOBS_SHOWN,
) -> Iterator[Sample]:
    """Yields job counts by state, and per-job metrics of unfinished and recently finished jobs."""
    present = list(all_jobs)
    counts = Counter(job.state for job in present)
    for state in TRANSITIONS:
        yield Sample(catalogue.JOBS, counts[state], (name_of(state),))
    for job in _shown(present, finished_shown):
        yield from _one_job(job, activity)


def _shown(present: Sequence[job_pb2.Job], finished_shown: int) -> list[job_pb2.Job]:
    finished = [job for job in present if job.state in FINAL]
    finished.sort(key=lambda job: (job.end_time.ToNanoseconds(), job.id), reverse=True)
    return [job for job in present if job.state not in FINAL] + finished[:finished_shown]


def _one_job(job: job_pb2.Job, activity: JobActivity) -> Iterator[Sample]:
    names = (job.id, job.name)
    mode = spec_pb2.SearchMode.Name(job.spec.search.mode).removeprefix("SEARCH_MODE_").lower()
    strategy = "evaluation" if job.HasField("evaluation") else mode
    yield Sample(
        catalogue.JOB_INFO, 1, (*names, job.owner, job.campaign, strategy, job.fork.job_id)
    )
    yield Sample(catalogue.JOB_STATE, 1, (*names, name_of(job.state)))
    for metric, value in (*_reported(job), *_seen(job.id, activity)):
        yield Sample(metric, value, names)
    pods = activity.worker_pods.get(job.id, WorkerPods({}, {}))
    for phase, count in pods.by_phase.items():
        yield Sample(catalogue.JOB_WORKER_PODS, count, (*names, phase))
    for reason, count in pods.ended.items():
        yield Sample(catalogue.JOB_WORKER_PODS_ENDED, count, (*names, reason))


# Job metrics are named after their JobProgress field, with these exceptions.
_RENAMED = {
    "wall_seconds": catalogue.JOB_RUN_SECONDS,
    "estimated_cost": catalogue.JOB_COST,
    "share_done": catalogue.JOB_DONE_RATIO,
}
_BY_FIELD = {
    metric.name.removeprefix(f"{catalogue.PREFIX}job_").removesuffix("_total"): metric
    for metric in catalogue.JOB_METRICS
} | _RENAMED


def _reported(job: job_pb2.Job) -> Iterator[tuple[Metric, float]]:
    progress = job.progress
    yield catalogue.JOB_PRIORITY, job.priority
    yield catalogue.JOB_CANDIDATES_LEFT, max(progress.candidates - progress.candidates_done, 0)
    for field in fields_of(progress):
        if field.name not in _BY_FIELD or is_unset(progress, field):
            continue
        value = getattr(progress, field.name)
        if not isinstance(value, progress_pb2.Estimate):
            yield _BY_FIELD[field.name], value
            continue
        yield _BY_FIELD[field.name], value.mean
        if value.HasField("standard_error"):
            yield _BY_FIELD[f"{field.name}_standard_error"], value.standard_error


def _seen(job_id: str, activity: JobActivity) -> Iterator[tuple[Metric, float]]:
    yield catalogue.JOB_WORKERS_LOST, activity.workers_lost.get(job_id, 0)
    last_result = activity.last_result(job_id)
    if last_result is not None:
        yield catalogue.JOB_LAST_EVALUATION, last_result
    checkpoint = activity.last_checkpoint(job_id)
    if checkpoint is not None:
        yield catalogue.JOB_LAST_CHECKPOINT, checkpoint.unix_seconds
        if checkpoint.size_bytes:
            yield catalogue.JOB_CHECKPOINT_BYTES, checkpoint.size_bytes
