"""What may be asked of a job in each of its states."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from remy_farm.v1.job_pb2 import JobState
from remy_services.jobs.states import (
    CANCELLED,
    CANCELLING,
    FAILED,
    FINAL,
    PAUSED,
    PAUSING,
    PENDING,
    RECOVERING,
    RUNNING,
    SCHEDULING,
    SUCCEEDED,
    name_of,
)


class Operation(Enum):
    """What somebody asks of a job, as it is called in sentences."""

    PAUSE = "paused"
    RESUME = "resumed"
    CANCEL = "cancelled"
    EXTEND = "extended"
    DELETE = "deleted"


class NotNow(Exception):
    """The job's state does not allow it. One sentence for people."""


# The state that follows each state; the same one where nothing is left to do.
_FOLLOWING: Final[Mapping[Operation, Mapping[JobState, JobState]]] = {
    Operation.PAUSE: {
        PENDING: PAUSED,
        SCHEDULING: PAUSING,
        RUNNING: PAUSING,
        RECOVERING: PAUSING,
        PAUSING: PAUSING,
        PAUSED: PAUSED,
    },
    Operation.RESUME: {
        PAUSED: PENDING,
        FAILED: PENDING,
        PENDING: PENDING,
        SCHEDULING: SCHEDULING,
        RUNNING: RUNNING,
        RECOVERING: RECOVERING,
    },
    Operation.CANCEL: {
        PENDING: CANCELLED,
        PAUSED: CANCELLED,
        SCHEDULING: CANCELLING,
        RUNNING: CANCELLING,
        RECOVERING: CANCELLING,
        PAUSING: CANCELLING,
        CANCELLING: CANCELLING,
        CANCELLED: CANCELLED,
    },
    Operation.EXTEND: {
        PENDING: PENDING,
        SCHEDULING: SCHEDULING,
        RUNNING: RUNNING,
        RECOVERING: RECOVERING,
        PAUSED: PAUSED,
        SUCCEEDED: PENDING,
        CANCELLED: PENDING,
    },
    Operation.DELETE: {state: state for state in (PAUSED, *FINAL)},
}


def state_after(operation: Operation, state: JobState) -> JobState:
    """The state that the operation leads to from `state`; the same if it changes none.

    Raises NotNow where the state does not allow it.
    """
    following = _FOLLOWING[operation]
    if state not in following:
        allowed = ", ".join(name_of(each) for each in sorted(following))
        raise NotNow(
            f"a job that is {name_of(state)} cannot be {operation.value}; it must be one of "
            f"{allowed}"
        )
    return following[state]
