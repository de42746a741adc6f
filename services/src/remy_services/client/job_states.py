"""What a job's state means to somebody who waits for it."""

from __future__ import annotations

from typing import Final

from remy_farm.v1 import job_pb2

FINAL_STATES: Final = frozenset(
    {job_pb2.JOB_STATE_CANCELLED, job_pb2.JOB_STATE_SUCCEEDED, job_pb2.JOB_STATE_FAILED}
)
#: Somebody is at work on the job, or is about to be.
WORKING_STATES: Final = frozenset(
    {
        job_pb2.JOB_STATE_SCHEDULING,
        job_pb2.JOB_STATE_RUNNING,
        job_pb2.JOB_STATE_PAUSING,
        job_pb2.JOB_STATE_RECOVERING,
        job_pb2.JOB_STATE_CANCELLING,
    }
)
