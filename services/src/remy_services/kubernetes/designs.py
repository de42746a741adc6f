"""What the launcher has to know of a design job."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from remy_farm.v1 import job_pb2, spec_pb2


class Phase(Enum):
    """What a design wants of its workers."""

    #: They should work.
    RUNNING = "running"
    #: They should stop, and may be wanted again.
    PAUSED = "paused"
    #: They are not needed any more, and end by themselves.
    ENDED = "ended"


_PHASES: Final = {
    job_pb2.JOB_STATE_PENDING: Phase.PAUSED,
    job_pb2.JOB_STATE_SCHEDULING: Phase.RUNNING,
    job_pb2.JOB_STATE_RUNNING: Phase.RUNNING,
    job_pb2.JOB_STATE_RECOVERING: Phase.RUNNING,
    job_pb2.JOB_STATE_PAUSING: Phase.PAUSED,
    job_pb2.JOB_STATE_PAUSED: Phase.PAUSED,
    job_pb2.JOB_STATE_CANCELLING: Phase.ENDED,
    job_pb2.JOB_STATE_CANCELLED: Phase.ENDED,
    job_pb2.JOB_STATE_SUCCEEDED: Phase.ENDED,
    job_pb2.JOB_STATE_FAILED: Phase.ENDED,
}


@dataclass(frozen=True)
class Load:
    """How much work there is, as far as it is known."""

    #: CPU time of all simulations of a step.
    step_cpu_seconds: float | None = None
    #: CPU time that the design's budget still allows.
    cpu_seconds_left: float | None = None


@dataclass(frozen=True)
class Design:
    """A design job, as far as its workers are concerned."""

    job_id: str
    phase: Phase
    workers: spec_pb2.Workers = field(default_factory=spec_pb2.Workers)
    load: Load = field(default_factory=Load)
    #: When it ended, in seconds since 1970; None while it has not.
    ended_at: float | None = None


def design_of(job: job_pb2.Job) -> Design:
    """The design that a job stands for."""
    ended_at = job.end_time.seconds + job.end_time.nanos / 1e9 if job.HasField("end_time") else None
    return Design(job.id, _PHASES[job.state], job.spec.workers, _load(job), ended_at)


def _load(job: job_pb2.Job) -> Load:
    progress, stop = job.progress, job.spec.stop
    left = stop.cpu_seconds - progress.cpu_seconds if stop.HasField("cpu_seconds") else None
    if not progress.evaluations:
        return Load(cpu_seconds_left=left)
    simulations = progress.candidates * job.spec.search.specimens
    seconds = simulations * progress.cpu_seconds / progress.evaluations
    return Load(seconds or None, left)
