"""Why a job cannot go on, by what went wrong."""

from __future__ import annotations

import secrets

import structlog

from remy_farm.v1 import job_pb2
from remy_services.coordinator.running.resume import SnapshotsLost
from remy_services.designer import OtherVersionError
from remy_services.evaluation import ResultsDiffer, TaskQuarantined
from remy_simulator import InvalidRequest

_log = structlog.get_logger()


class WorkLimitReached(Exception):
    """The job has simulated as much as one job may. One sentence for people."""


def check_work(packets: int, most: int | None) -> None:
    """Raises WorkLimitReached if a job has simulated more packets than one job may."""
    if most is not None and packets > most:
        raise WorkLimitReached(
            f"the job has simulated {packets} packets; at most {most} are allowed for one job here"
        )


_REASONS: tuple[tuple[type[Exception], job_pb2.FailureReason], ...] = (
    (SnapshotsLost, job_pb2.FAILURE_REASON_SNAPSHOTS_LOST),
    (OtherVersionError, job_pb2.FAILURE_REASON_OTHER_VERSION),
    (TaskQuarantined, job_pb2.FAILURE_REASON_TASK_QUARANTINED),
    (ResultsDiffer, job_pb2.FAILURE_REASON_RESULTS_DIFFER),
    (InvalidRequest, job_pb2.FAILURE_REASON_REQUEST_REFUSED),
    (WorkLimitReached, job_pb2.FAILURE_REASON_WORK_LIMIT),
)


def reason_for(error: Exception) -> tuple[job_pb2.FailureReason, str]:
    """The reason, and one sentence for people. What nobody expected goes to the log."""
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason, str(error)
    error_id = secrets.token_hex(4)
    _log.error("a job failed unexpectedly", error_id=error_id, exc_info=error)
    return job_pb2.FAILURE_REASON_INTERNAL, f"internal error, id {error_id} in the log"
