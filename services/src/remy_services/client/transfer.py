"""Moving a job as one file, in parts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import grpc
from google.protobuf.message import DecodeError

from remy_farm.v1 import design_service_pb2 as messages
from remy_farm.v1 import job_pb2
from remy_services.client.connection import Connection
from remy_services.client.errors import ServerFailed
from remy_services.client.status import CallFailure
from remy_services.files import FileError

MOST_ARCHIVE_BYTES = 1 << 30

_PART_BYTES = 256 << 10
_DEADLINE_SECONDS = 600.0


def export_job(connection: Connection, job: str) -> bytes:
    """A job's archive, as a serialized SealedJobArchive whose digest was checked.

    Raises ServiceError.
    """

    def receive() -> bytes:
        request = messages.ExportJobRequest(job=job)
        stream = connection.stream("ExportJob", request, deadline_seconds=_DEADLINE_SECONDS)
        return b"".join(response.part for response in stream)

    content = connection.repeat(receive)
    problem = archive_problem(content)
    if problem is not None:
        raise ServerFailed(
            f"the archive of {job} arrived damaged: it {problem}", grpc.StatusCode.DATA_LOSS
        )
    return content


def import_job(connection: Connection, content: bytes, *, source: str) -> job_pb2.Job:
    """Stores an exported job; `source` names the archive. Is not repeated.

    Raises FileError for what is no archive, and ServiceError.
    """
    problem = archive_problem(content)
    if problem is not None:
        raise FileError(f"{source} {problem}")
    try:
        response: messages.ImportJobResponse = connection.call_once(
            "ImportJob", _parts(content), deadline_seconds=_DEADLINE_SECONDS
        )
    except grpc.RpcError as error:
        raise connection.error(CallFailure(error)) from None
    return response.job


def archive_problem(content: bytes) -> str | None:
    """What is wrong with an archive, to follow its name; None if nothing shows from outside."""
    try:
        sealed = job_pb2.SealedJobArchive.FromString(content)
    except DecodeError:
        return "is not an exported job"
    if not sealed.archive:
        return "is not an exported job"
    if hashlib.sha256(sealed.archive).digest() != sealed.sha256:
        return "is damaged: its SHA-256 is not the one that it was written with"
    return None


def _parts(content: bytes) -> Iterator[messages.ImportJobRequest]:
    for start in range(0, len(content), _PART_BYTES):
        yield messages.ImportJobRequest(part=content[start : start + _PART_BYTES])
