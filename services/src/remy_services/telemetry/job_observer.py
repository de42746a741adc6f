"""What a coordinator tells of its jobs, as log lines, spans and seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from remy_farm.v1 import evaluation_pb2, job_pb2, progress_pb2
from remy_farm.v1.job_pb2 import JobState
from remy_services.jobs.states import FAILED, name_of
from remy_services.telemetry.step_times import Phase, StepTimes
from remy_services.telemetry.tracing import span

_LOG = structlog.stdlib.get_logger("jobs")


class JobObserver:
    """Logs what happens to jobs, traces their steps, and adds up what designers compute."""

    def __init__(self, step_times: StepTimes) -> None:
        self._step_times = step_times

    def state_changed(self, job: job_pb2.Job, before: JobState) -> None:
        """The change has been committed."""
        log = _LOG.warning if job.state == FAILED else _LOG.info
        log(
            "job changed its state",
            job_id=job.id,
            job_name=job.name,
            before=name_of(before),
            state=name_of(job.state),
            why=job.status_message,
        )

    @contextmanager
    def step(self, job: job_pb2.Job, request: evaluation_pb2.EvaluationRequest) -> Iterator[None]:
        """Surrounds a step: a span, and its identity on every line logged within."""
        number = job.progress.step + 1
        with (
            structlog.contextvars.bound_contextvars(job_id=job.id, step=number),
            span(
                "step",
                job_id=job.id,
                step=number,
                candidates=len(request.candidates),
                specimens=len(request.specimens),
            ),
        ):
            yield

    def progressed(self, job: job_pb2.Job, event: progress_pb2.ProgressEvent) -> None:
        """An event of the search has been committed; only its milestones are logged."""
        match event.WhichOneof("event"):
            case "epoch_finished":
                record = event.epoch_finished.record
                _LOG.info(
                    "epoch finished",
                    job_id=job.id,
                    epoch=record.epoch,
                    step=event.step,
                    rules=record.rules,
                    gain=record.comparison.gain.mean,
                    accepted=record.comparison.accepted,
                )
            case "design_finished":
                finished = event.design_finished
                reason = progress_pb2.StopReason.Name(finished.reason)
                _LOG.info("design finished", job_id=job.id, step=event.step, reason=reason)

    def computed(self, job_id: str, seconds: float) -> None:
        """A designer has computed for so long."""
        self._step_times.add(Phase.SEARCH, seconds)

    def store_in_trouble(self, job_id: str, why: str) -> None:
        """A commit could not be made, and will be tried again."""
        _LOG.warning("the store takes no commit", job_id=job_id, why=why)

    def store_well_again(self, job_id: str) -> None:
        """That commit has been made."""
        _LOG.info("the store takes commits again", job_id=job_id)

    def lost(self, job_id: str, why: str) -> None:
        """Another coordinator has the job now."""
        _LOG.warning("job lost to another coordinator", job_id=job_id, why=why)
