"""A job in words and figures for people."""

from __future__ import annotations

from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp

from remy_farm.v1 import job_pb2
from remy_services.cli.service.message_tree import enum_name
from remy_services.client import WORKING_STATES
from remy_services.report.wording import count, duration, several, stop_reason, with_error

_FAILURES = {
    job_pb2.FAILURE_REASON_INTERNAL: "of a defect of the coordinator",
    job_pb2.FAILURE_REASON_SNAPSHOTS_LOST: "none of its snapshots can be read",
    job_pb2.FAILURE_REASON_OTHER_VERSION: "its snapshot was made with another simulator version",
    job_pb2.FAILURE_REASON_TASK_QUARANTINED: "one of its tasks kept ending its workers",
    job_pb2.FAILURE_REASON_REQUEST_REFUSED: "the simulator refused one of its requests",
    job_pb2.FAILURE_REASON_RESULTS_DIFFER: "workers gave different results for one of its tasks",
    job_pb2.FAILURE_REASON_WORK_LIMIT: "it simulated as many packets as one job may",
}


def state_name(state: job_pb2.JobState) -> str:
    """As in "running"."""
    return enum_name(job_pb2.JobState.DESCRIPTOR, state) or "unknown"


def called(job: job_pb2.Job) -> str:
    """Name and id."""
    return f"{job.name} ({job.id})" if job.id else job.name


def why(job: job_pb2.Job) -> str:
    """What there is to say of the job's state besides its name; may be empty."""
    if job.status_message:
        return job.status_message
    if job.state == job_pb2.JOB_STATE_SUCCEEDED:
        return stop_reason(job.stop_reason)
    if job.state == job_pb2.JOB_STATE_FAILED:
        return _FAILURES.get(job.failure_reason, "for a reason that this client does not know")
    return ""


def state(job: job_pb2.Job) -> str:
    """The job's state and why."""
    reason = why(job)
    name = state_name(job.state)
    return f"{name}: {reason}" if reason else name


def has_begun(job: job_pb2.Job) -> bool:
    """Whether there are any figures yet."""
    return job.progress.step > 0 or job.progress.rules > 0


def place(job: job_pb2.Job) -> str:
    """Epoch, rules and step."""
    now = job.progress
    return f"epoch {now.epoch}, {several(now.rules, 'rule')}, step {now.step}"


def candidates(job: job_pb2.Job) -> str:
    """Candidates done of those of the step; empty between steps."""
    now = job.progress
    if not now.candidates:
        return ""
    return f"{now.candidates_done} of {several(now.candidates, 'candidate')}"


def score(job: job_pb2.Job, *, digits_only: bool = False) -> str:
    """The score of the table being worked on and what the last epoch gained, as far as known."""
    now = job.progress
    words = with_error(now.score if now.HasField("score") else None)
    if digits_only or not now.HasField("epoch_gain"):
        return words
    return f"{words}, gain of the last epoch {with_error(now.epoch_gain, signed=True)}"


def measures(job: job_pb2.Job) -> str:
    """Packets a second, time used and left, workers, cost."""
    now = job.progress
    parts = []
    if job.state in WORKING_STATES:
        parts.append(f"{count(now.packets_per_second)} packets/s")
    parts.append(f"{duration(now.cpu_seconds)} CPU")
    if now.HasField("estimated_cost"):
        parts.append(f"cost {now.estimated_cost:.2f}")
    if now.workers:
        parts.append(several(now.workers, "worker"))
    if now.HasField("eta_seconds"):
        parts.append(f"ETA {duration(now.eta_seconds)}")
    if now.recoveries:
        parts.append(f"recovered {several(now.recoveries, 'time')}")
    return ", ".join(parts)


def share_done(job: job_pb2.Job) -> str:
    """How much of the search is done, where that is known."""
    if job.state == job_pb2.JOB_STATE_SUCCEEDED or not job.progress.HasField("share_done"):
        return "-"
    return f"{job.progress.share_done:.0%}"


def moment(time: Timestamp) -> str:
    """A time by the clock on this machine's wall."""
    local = datetime.fromtimestamp(time.ToNanoseconds() / 1e9).astimezone()
    return local.strftime("%Y-%m-%d %H:%M:%S")
