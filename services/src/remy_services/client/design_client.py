"""The requests of DesignService as functions, and jobs moved as files, in parts."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from remy_farm.files import FileError
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import evaluation_pb2, job_pb2, spec_pb2
from remy_services.client.connection import Connection
from remy_services.client.status import Refused, ServerFailed

FINAL_STATES: Final = frozenset(
    {job_pb2.JOB_STATE_CANCELLED, job_pb2.JOB_STATE_SUCCEEDED, job_pb2.JOB_STATE_FAILED}
)
MOST_ARCHIVE_BYTES: Final = 1 << 30

_Making = TypeVar("_Making", messages.SubmitJobRequest, messages.ForkJobRequest)
_Response = TypeVar("_Response", bound=Message)

_PAGE_SIZE = 500
_PART_BYTES = 256 << 10
_TRANSFER_SECONDS = 600.0


class DesignClient:
    """What can be asked of a coordinator. A job is named by its id, its name or how its id begins,
    where that is unambiguous.

    Every method raises ServiceError. All requests may be repeated: what makes a job carries an id
    of its own, so that a repeat makes nothing new.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def submit(self, request: messages.SubmitJobRequest) -> job_pb2.Job:
        """Stores a new job, unless the request is only to be checked."""
        return self._job("SubmitJob", _repeatable(request))

    def fork(self, request: messages.ForkJobRequest) -> job_pb2.Job:
        """A new job that begins with the table of another's epoch."""
        return self._job("ForkJob", _repeatable(request))

    def submit_evaluation(
        self, head: messages.SubmitEvaluationRequest, requests: Sequence[bytes]
    ) -> job_pb2.Job:
        """Stores a new job that has serialized requests evaluated; `head` has an id of its own."""

        def stream() -> Iterator[messages.SubmitEvaluationRequest]:
            for number, request in enumerate(requests):
                message = messages.SubmitEvaluationRequest()
                if number == 0:
                    message.CopyFrom(head)
                message.request = request
                yield message

        call = self.connection.call_once
        job: job_pb2.Job = self.connection.repeat(
            lambda: call("SubmitEvaluation", stream(), deadline_seconds=_TRANSFER_SECONDS)
        ).job
        return job

    def outcome(self, job: str, part: int) -> evaluation_pb2.EvaluationOutcome:
        """What a part of an evaluation job came to."""
        request = messages.ReadEvaluationRequest(job=job, part=part)
        return evaluation_pb2.EvaluationOutcome.FromString(
            _received(self.connection, "ReadEvaluation", request, "piece")
        )

    def get(self, job: str) -> job_pb2.Job:
        """The job as it is now, with its specification."""
        return self._job("GetJob", messages.GetJobRequest(job=job))

    def list(self, request: messages.ListJobsRequest) -> messages.ListJobsResponse:
        """One page of jobs, newest first."""
        return self._call(messages.ListJobsResponse, "ListJobs", request)

    def list_all(self, request: messages.ListJobsRequest) -> Iterator[job_pb2.Job]:
        """The jobs of all pages."""
        page = messages.ListJobsRequest()
        page.CopyFrom(request)
        page.page_size = _PAGE_SIZE
        while True:
            response = self.list(page)
            yield from response.jobs
            if not response.next_page_token:
                return
            page.page_token = response.next_page_token

    def pause(self, job: str) -> job_pb2.Job:
        """Has a job keep what it has and evaluate nothing."""
        return self._job("PauseJob", messages.PauseJobRequest(job=job))

    def resume(self, job: str) -> job_pb2.Job:
        """Has a paused job go on."""
        return self._job("ResumeJob", messages.ResumeJobRequest(job=job))

    def cancel(self, job: str) -> job_pb2.Job:
        """Ends a job; its best table stays."""
        return self._job("CancelJob", messages.CancelJobRequest(job=job))

    def extend(
        self,
        job: str,
        *,
        stop: spec_pb2.Stop | None,
        joint_steps: int | None,
        priority: int | None = None,
    ) -> job_pb2.Job:
        """Changes a job's budgets (new stop rules in place of the old) or priority; None leaves
        them."""
        request = messages.ExtendJobRequest(
            job=job, stop=stop, joint_steps=joint_steps, priority=priority
        )
        return self._job("ExtendJob", request)

    def delete(self, job: str) -> None:
        """Removes a job that is in a final state or paused, with everything stored of it."""
        try:
            self.connection.call("DeleteJob", messages.DeleteJobRequest(job=job))
        except Refused as error:
            if not (error.is_repeated and error.code == grpc.StatusCode.NOT_FOUND):
                raise

    def remycc(
        self,
        job: str,
        *,
        epoch: int | None,
        file_format: messages.RemyCCFormat,
        table: str | None = None,
    ) -> messages.GetRemyCCResponse:
        """A job's table at an epoch, or the best so far, as a file whose digest was checked; of
        several the one called `table`, or the first."""
        request = messages.GetRemyCCRequest(job=job, epoch=epoch, format=file_format, table=table)
        response: messages.GetRemyCCResponse = self.connection.call("GetRemyCC", request)
        if hashlib.sha256(response.content).digest() != response.sha256:
            raise ServerFailed(
                f"the RemyCC of {job} arrived damaged: its SHA-256 is not the coordinator's",
                grpc.StatusCode.DATA_LOSS,
            )
        return response

    def epochs(self, job: str) -> Sequence[job_pb2.JobEpoch]:
        """A job's epochs in order, without their tables."""
        return self._call(
            messages.ListEpochsResponse, "ListEpochs", messages.ListEpochsRequest(job=job)
        ).epochs

    def worker_lines(self, job: str) -> Sequence[messages.WorkerLine]:
        """The last lines that a job's workers have reported of their logs, oldest first."""
        return self._call(
            messages.ListWorkerLinesResponse,
            "ListWorkerLines",
            messages.ListWorkerLinesRequest(job=job),
        ).lines

    def compare(self, jobs: Sequence[str]) -> messages.CompareJobsResponse:
        """Jobs side by side."""
        return self._call(
            messages.CompareJobsResponse, "CompareJobs", messages.CompareJobsRequest(jobs=jobs)
        )

    def server_info(self) -> messages.GetServerInfoResponse:
        """What serves there, and how it is set up."""
        return self._call(
            messages.GetServerInfoResponse, "GetServerInfo", messages.GetServerInfoRequest()
        )

    def _call(self, kind: type[_Response], method: str, request: Message) -> _Response:
        response = self.connection.call(method, request)
        assert isinstance(response, kind)
        return response

    def _job(self, method: str, request: Message) -> job_pb2.Job:
        job: job_pb2.Job = self.connection.call(method, request).job
        return job


def _repeatable(request: _Making) -> _Making:
    """The request with an id, so that a repeat of it makes nothing new."""
    repeatable = type(request)()
    repeatable.CopyFrom(request)
    repeatable.client_request_id = request.client_request_id or str(uuid.uuid4())
    return repeatable


def _received(connection: Connection, method: str, request: Message, field: str) -> bytes:
    """What a stream of responses holds in this field. Raises ServiceError."""

    def receive() -> bytes:
        stream = connection.stream(method, request, deadline_seconds=_TRANSFER_SECONDS)
        try:
            return b"".join(getattr(response, field) for response in stream)
        except grpc.RpcError as error:
            raise connection.error(error) from None

    return connection.repeat(receive)


def export_job(connection: Connection, job: str) -> bytes:
    """A job's archive, as a serialized SealedJobArchive whose digest was checked.

    Raises ServiceError.
    """
    content = _received(connection, "ExportJob", messages.ExportJobRequest(job=job), "part")
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
    response: messages.ImportJobResponse = connection.call_once(
        "ImportJob", _parts(content), deadline_seconds=_TRANSFER_SECONDS
    )
    return response.job


def upload_trace(connection: Connection, opportunities_us: bytes) -> None:
    """Has the coordinator keep a recording that a specification names. Raises ServiceError."""
    connection.repeat(
        lambda: connection.call_once(
            "UploadTrace",
            (messages.UploadTraceRequest(part=part) for part in _cut(opportunities_us)),
            deadline_seconds=_TRANSFER_SECONDS,
        )
    )


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
    for part in _cut(content):
        yield messages.ImportJobRequest(part=part)


def _cut(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), _PART_BYTES):
        yield content[start : start + _PART_BYTES]
