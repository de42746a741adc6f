"""What a job's state means to somebody who waits for it."""

from __future__ import annotations

from typing import Final

from remy_farm.v1 import job_pb2

FINAL_STATES: Final = frozenset(
    {job_pb2.JOB_STATE_CANCELLED, job_pb2.JOB_STATE_SUCCEEDED, job_pb2.JOB_STATE_FAILED}
)
