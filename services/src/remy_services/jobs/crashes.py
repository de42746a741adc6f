"""What becomes of a job whose coordinator ended in the middle of something."""

from __future__ import annotations

from remy_farm.v1 import job_pb2, progress_pb2
from remy_services.jobs.draft import Draft
from remy_services.jobs.states import CANCELLED, PAUSED, PENDING, RECOVERING

_ENDED = "its coordinator ended"


def after_crash(draft: Draft) -> None:
    """Moves the job on to a state that a new coordinator can go on from."""
    match draft.job.state:
        case job_pb2.JOB_STATE_SCHEDULING:
            draft.move(PENDING, message=f"{_ENDED} before its first step")
        case job_pb2.JOB_STATE_RUNNING:
            draft.move(RECOVERING, message=f"{_ENDED}; its last checkpoint is being read")
        case job_pb2.JOB_STATE_PAUSING:
            draft.move(PAUSED)
        case job_pb2.JOB_STATE_CANCELLING:
            draft.finish(progress_pb2.STOP_REASON_CANCELLED, CANCELLED)
