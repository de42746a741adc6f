"""What is exported of jobs: a pure function of the jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from remy_farm.v1 import job_pb2, spec_pb2
from remy_services.jobs.states import FINAL, TRANSITIONS, name_of
from remy_services.telemetry.activity import JobActivity
from remy_services.telemetry.catalogue import Metric, jobs
from remy_services.telemetry.samples import Sample

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
        yield Sample(jobs.JOBS, counts[state], (name_of(state),))
    for job in _shown(present, finished_shown):
        yield from _one_job(job, activity)


def _shown(present: Sequence[job_pb2.Job], finished_shown: int) -> list[job_pb2.Job]:
    finished = [job for job in present if job.state in FINAL]
    finished.sort(key=lambda job: (job.end_time.ToNanoseconds(), job.id), reverse=True)
    return [job for job in present if job.state not in FINAL] + finished[:finished_shown]


def _one_job(job: job_pb2.Job, activity: JobActivity) -> Iterator[Sample]:
    names = (job.id, job.name)
    progress = job.progress
    strategy = spec_pb2.SearchMode.Name(job.spec.search.mode).removeprefix("SEARCH_MODE_").lower()
    yield Sample(jobs.JOB_INFO, 1, (*names, job.owner, job.campaign, strategy, job.fork.job_id))
    yield Sample(jobs.JOB_STATE, 1, (*names, name_of(job.state)))
    for metric, value in (*_always(job), *_where_known(progress), *_seen(job.id, activity)):
        yield Sample(metric, value, names)


def _always(job: job_pb2.Job) -> Iterator[tuple[Metric, float]]:
    progress = job.progress
    yield jobs.JOB_PRIORITY, job.priority
    yield jobs.JOB_EPOCH, progress.epoch
    yield jobs.JOB_STEP, progress.step
    yield jobs.JOB_RULES, progress.rules
    yield jobs.JOB_CANDIDATES, progress.candidates
    yield jobs.JOB_CANDIDATES_LEFT, max(progress.candidates - progress.candidates_done, 0)
    yield jobs.JOB_EPOCHS_WITHOUT_GAIN, progress.epochs_without_gain
    yield jobs.JOB_WORKERS, progress.workers
    yield jobs.JOB_CPU_SECONDS, progress.cpu_seconds
    yield jobs.JOB_RUN_SECONDS, progress.wall_seconds
    yield jobs.JOB_EVALUATIONS, progress.evaluations
    yield jobs.JOB_SIMULATED_PACKETS, progress.simulated_packets
    yield jobs.JOB_RECOVERIES, progress.recoveries


def _where_known(progress: job_pb2.JobProgress) -> Iterator[tuple[Metric, float]]:
    if progress.HasField("score"):
        yield jobs.JOB_SCORE, progress.score.mean
        if progress.score.HasField("standard_error"):
            yield jobs.JOB_SCORE_STANDARD_ERROR, progress.score.standard_error
    if progress.HasField("epoch_gain"):
        yield jobs.JOB_EPOCH_GAIN, progress.epoch_gain.mean
        if progress.epoch_gain.HasField("standard_error"):
            yield jobs.JOB_EPOCH_GAIN_STANDARD_ERROR, progress.epoch_gain.standard_error
    if progress.HasField("estimated_cost"):
        yield jobs.JOB_COST, progress.estimated_cost
    if progress.HasField("eta_seconds"):
        yield jobs.JOB_ETA_SECONDS, progress.eta_seconds
    if progress.HasField("share_done"):
        yield jobs.JOB_DONE_RATIO, progress.share_done


def _seen(job_id: str, activity: JobActivity) -> Iterator[tuple[Metric, float]]:
    last_result = activity.last_result(job_id)
    if last_result is not None:
        yield jobs.JOB_LAST_EVALUATION, last_result
    checkpoint = activity.last_checkpoint(job_id)
    if checkpoint is not None:
        yield jobs.JOB_LAST_CHECKPOINT, checkpoint.unix_seconds
        if checkpoint.size_bytes:
            yield jobs.JOB_CHECKPOINT_BYTES, checkpoint.size_bytes
