"""Values of metrics at one moment: of jobs, and of those who evaluate for them."""

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
    """One series' value."""

    metric: Metric
    value: float
    #: Values of the metric's labels, in their order.
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Distribution:
    """A histogram without labels."""

    metric: Metric
    durations: Durations


Reading = Iterable[Sample | Distribution]
Reader = Callable[[], Reading]


class SampledCollector(Collector):
    """Exports what a function tells when it is asked: a series that it leaves out is gone."""

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
    """Counts up to every bucket's upper bound."""
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
    """The last one of a job that is known to be durable."""

    #: Before the first: when this coordinator took the job.
    unix_seconds: float
    #: Size of the snapshot; 0 before the first.
    size_bytes: int = 0


@dataclass(frozen=True)
class WorkerPods:
    """The pods of a job's workers: by phase, and those that ended by reason."""

    by_phase: Mapping[str, int]
    ended: Mapping[str, int]


class JobActivity:
    """Results and checkpoints by job id; may be told from any thread."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """`clock` tells Unix time in seconds."""
        self._clock = clock
        self._results: dict[str, float] = {}
        self._checkpoints: dict[str, Checkpoint] = {}
        #: Workers that were lost, and the pods of workers that are there or have ended, counted.
        self.workers_lost: Mapping[str, int] = {}
        self.worker_pods: Mapping[str, WorkerPods] = {}

    def requested(self, job_id: str) -> None:
        """The job waits for results from now on, if it did not already."""
        self._results.setdefault(job_id, self._clock())

    def evaluated(self, job_id: str) -> None:
        """A result of the job has come."""
        self._results[job_id] = self._clock()

    def taken(self, job_id: str) -> None:
        """This coordinator is responsible for the job's checkpoints from now on."""
        self._checkpoints.setdefault(job_id, Checkpoint(self._clock()))

    def checkpointed(self, job_id: str, size_bytes: int) -> None:
        """A snapshot of the job is durable."""
        self._checkpoints[job_id] = Checkpoint(self._clock(), size_bytes)

    def last_result(self, job_id: str) -> float | None:
        """Unix time; None if the job has not asked for anything."""
        return self._results.get(job_id)

    def last_checkpoint(self, job_id: str) -> Checkpoint | None:
        """None if this coordinator has not taken the job."""
        return self._checkpoints.get(job_id)

    def keep_only(self, job_ids: Iterable[str]) -> None:
        """Forgets all other jobs."""
        kept = set(job_ids)
        for known in (self._results, self._checkpoints):
            for job_id in [each for each in tuple(known) if each not in kept]:
                known.pop(job_id, None)


#: Why workers leave, and leases end.
DEPARTURES = ("goodbye", "idle", "lost", "quarantined", "signal", "silent", "spot_interruption")
LEASE_ENDS = (
    *("lost", "goodbye", "silent", "returned"),
    *("bad result", "quarantined", "withdrawn", "done elsewhere", "divided"),
)
_FLAWS = ("digest", "encoding", "impossible")


def evaluator_samples(status: EvaluatorStatus) -> Iterator[Sample]:
    """How many evaluate, and how much there is to do."""
    yield Sample(catalogue.WORKERS_CONNECTED, status.workers)
    yield Sample(catalogue.WORKERS_BUSY, status.busy_workers)
    yield Sample(catalogue.WORKERS_QUARANTINED, status.quarantined_workers)
    yield Sample(catalogue.THREADS_CONNECTED, status.threads)
    yield Sample(catalogue.TASKS_WAITING, status.tasks_waiting)
    yield Sample(catalogue.TASKS_RUNNING, status.tasks_running)


def scheduler_samples(snapshot: SchedulerSnapshot) -> Iterator[Sample | Distribution]:
    """What has become of tasks, leases and workers."""
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
    yield from _by_reason(catalogue.RESULTS_REJECTED, counts.bad_results, _FLAWS)
    yield Distribution(catalogue.TASK_DURATION, counts.task_durations)
    yield Distribution(catalogue.TASK_QUEUE_TIME, counts.queue_times)


def _by_reason(metric: Metric, counts: Mapping[str, int], usual: Iterable[str]) -> Iterator[Sample]:
    """The usual reasons are there from the beginning, so that their first count is an increase."""
    for reason in sorted({*usual, *counts}):
        yield Sample(metric, counts.get(reason, 0), (reason.replace(" ", "_"),))


#: So many of the jobs that are finished are exported one by one; the newest.
FINISHED_JOBS_SHOWN = 50


def job_samples(
    all_jobs: Iterable[job_pb2.Job],
    activity: JobActivity,
    *,
    finished_shown: int = FINISHED_JOBS_SHOWN,
) -> Iterator[Sample]:
    """Jobs by state, and every job that is not finished or is among the newest that are."""
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


# A metric is called as the field of JobProgress that it shows, but for these.
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
