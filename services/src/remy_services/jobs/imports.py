"""A job that comes from another farm."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from remy_farm.v1 import job_pb2, progress_pb2
from remy_services.jobs.draft import Draft
from remy_services.jobs.states import CANCELLED, CANCELLING, FINAL, PAUSED, TRANSITIONS
from remy_services.spec import check_spec
from remy_simulator.messages import to_native

_LONGEST_OWNER = 200


class NoJob(Exception):
    """What should be a job cannot be one. One sentence for people."""


def check_job(archive: job_pb2.JobArchive) -> None:
    """Raises NoJob, or SpecError, for what no farm would have made of a job."""
    job = archive.record.job
    check_spec(job.spec, source="the job's specification")
    if job.state not in TRANSITIONS:
        raise NoJob(f"the job's state is number {job.state}, which is no state")
    if job.revision != len(archive.events):
        raise NoJob(
            f"the job is at revision {job.revision}, and its history has {len(archive.events)} "
            f"entries"
        )
    if len(job.owner) > _LONGEST_OWNER or not job.owner.isprintable():
        raise NoJob(
            f"the job's owner must be printable text of at most {_LONGEST_OWNER} characters"
        )
    try:
        for time in (job.create_time, job.start_time, job.end_time):
            time.ToNanoseconds()
        if archive.record.HasField("first_table"):
            to_native(archive.record.first_table)
    except ValueError as error:
        raise NoJob(f"the job's table or time makes no sense: {error}") from error


def as_imported(archive: job_pb2.JobArchive, now: Timestamp, *, by: str, owner: str) -> None:
    """Changes the archive into that of a job that rests here: paused, if it was not in a final
    state; and that no request of a client of this farm has made."""
    record = archive.record
    record.client_request_id = ""
    record.request_sha256 = b""
    record.job.owner = owner
    draft = Draft(record, now)
    if record.job.state == CANCELLING:
        draft.finish(progress_pb2.STOP_REASON_CANCELLED, CANCELLED)
    elif record.job.state != PAUSED and record.job.state not in FINAL:
        draft.rest(message="was brought here from another farm", by=by)
    record.CopyFrom(draft.record)
    archive.events.extend(draft.events)
