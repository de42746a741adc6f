"""Job records and timestamps for tests."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from library.tests.designer.small_spec import small_spec
from remy_proto.v1 import job_pb2
from remy_services.jobs.states import PENDING, Draft


def at(seconds: int) -> Timestamp:
    return Timestamp(seconds=seconds)


def new_record(*, seconds: int = 1) -> job_pb2.JobRecord:
    """Returns the record of a newly submitted job."""
    job = job_pb2.Job(
        id="1", name="small", owner="ada", weight=1, spec=small_spec(), create_time=at(seconds)
    )
    draft = Draft(job_pb2.JobRecord(job=job), at(seconds))
    draft.move(PENDING)
    return draft.record
