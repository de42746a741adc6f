"""The states of a job, and how one follows another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from remy_farm.v1 import job_pb2
from remy_farm.v1.job_pb2 import JobState

PENDING: Final = job_pb2.JOB_STATE_PENDING
SCHEDULING: Final = job_pb2.JOB_STATE_SCHEDULING
RUNNING: Final = job_pb2.JOB_STATE_RUNNING
PAUSING: Final = job_pb2.JOB_STATE_PAUSING
PAUSED: Final = job_pb2.JOB_STATE_PAUSED
RECOVERING: Final = job_pb2.JOB_STATE_RECOVERING
CANCELLING: Final = job_pb2.JOB_STATE_CANCELLING
CANCELLED: Final = job_pb2.JOB_STATE_CANCELLED
SUCCEEDED: Final = job_pb2.JOB_STATE_SUCCEEDED
FAILED: Final = job_pb2.JOB_STATE_FAILED

#: What may follow each state.
TRANSITIONS: Final[Mapping[JobState, frozenset[JobState]]] = {
    PENDING: frozenset({SCHEDULING, PAUSED, CANCELLED}),
    # A coordinator that ends, or a job of higher priority, sends a job back to wait.
    SCHEDULING: frozenset({RUNNING, PENDING, PAUSING, CANCELLING, FAILED}),
    # A design may end while it is asked to pause or to end.
    RUNNING: frozenset({PENDING, PAUSING, RECOVERING, CANCELLING, SUCCEEDED, FAILED}),
    PAUSING: frozenset({PAUSED, CANCELLING, SUCCEEDED, FAILED}),
    PAUSED: frozenset({PENDING, CANCELLED}),
    RECOVERING: frozenset({RUNNING, PENDING, PAUSING, CANCELLING, FAILED}),
    CANCELLING: frozenset({CANCELLED, SUCCEEDED, FAILED}),
    # Extended.
    CANCELLED: frozenset({PENDING}),
    SUCCEEDED: frozenset({PENDING}),
    # Its cause was put right.
    FAILED: frozenset({PENDING}),
}

#: Nothing happens to a job any more unless somebody asks for it.
FINAL: Final = frozenset({CANCELLED, SUCCEEDED, FAILED})
#: A coordinator is at work on the job, or was when it ended.
ACTIVE: Final = frozenset({SCHEDULING, RUNNING, PAUSING, RECOVERING, CANCELLING})
#: Waits for its turn.
WAITING: Final = frozenset({PENDING})


def name_of(state: JobState) -> str:
    """The state as it is shown to people: "RUNNING"."""
    return JobState.Name(state).removeprefix("JOB_STATE_")
