"""Requests of DesignService as methods, and transfers of job archives and link traces."""

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
MAX_ARCHIVE_BYTES: Final = 1 << 30

_Making = TypeVar("_Making", messages.SubmitJobRequest, messages.ForkJobRequest)
_Response = TypeVar("_Response", bound=Message)

_PAGE_SIZE = 500
_PART_BYTES = 256 << 10
_TRANSFER_SECONDS = 600.0


class DesignClient:
    """Requests to a coordinator.

    A job is named by its id, its unique name or a unique prefix of its id. Every method raises
    ServiceError. All requests are idempotent: those that create a job carry a request id.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def submit(self, request: messages.SubmitJobRequest) -> job_pb2.Job:
        """Creates a job, unless the request only asks for validation."""
        return self._job("SubmitJob", _with_request_id(request))

    def fork(self, request: messages.ForkJobRequest) -> job_pb2.Job:
        """Creates a job that starts from the table of another job's epoch."""
        return self._job("ForkJob", _with_request_id(request))

    def submit_evaluation(
        self, head: messages.SubmitEvaluationRequest, requests: Sequence[bytes]
    ) -> job_pb2.Job:
        """Creates a job that evaluates serialized requests.

        `head` must have a client request id.
        """

        def stream() -> Iterator[messages.SubmitEvaluationRequest]:
            for number, request in enumerate(requests):
                message = messages.SubmitEvaluationRequest()
                if number == 0:
                    message.CopyFrom(head)
                message.request = request
                yield message

        call = self.connection.call_once
        job: job_pb2.Job = self.connection.retry(
            lambda: call("SubmitEvaluation", stream(), deadline_seconds=_TRANSFER_SECONDS)
        ).job
        return job

    def outcome(self, job: str, part: int) -> evaluation_pb2.EvaluationOutcome:
        """Returns the outcome of one part of an evaluation job."""
        request = messages.ReadEvaluationRequest(job=job, part=part)
        return evaluation_pb2.EvaluationOutcome.FromString(
            _download(self.connection, "ReadEvaluation", request, "piece")
        )

    def get(self, job: str) -> job_pb2.Job:
        """Returns the job with its specification."""
        return self._job("GetJob", messages.GetJobRequest(job=job))

    def list(self, request: messages.ListJobsRequest) -> messages.ListJobsResponse:
        """Returns one page of jobs, newest first."""
        return self._call(messages.ListJobsResponse, "ListJobs", request)

    def list_all(self, request: messages.ListJobsRequest) -> Iterator[job_pb2.Job]:
        """Yields the jobs of all pages."""
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
        """Pauses a job after a checkpoint."""
        return self._job("PauseJob", messages.PauseJobRequest(job=job))

    def resume(self, job: str) -> job_pb2.Job:
        """Resumes a paused job."""
        return self._job("ResumeJob", messages.ResumeJobRequest(job=job))

    def cancel(self, job: str) -> job_pb2.Job:
        """Cancels a job; its best table is kept."""
        return self._job("CancelJob", messages.CancelJobRequest(job=job))

    def extend(
        self,
        job: str,
        *,
        stop: spec_pb2.Stop | None,
        joint_steps: int | None,
        priority: int | None = None,
    ) -> job_pb2.Job:
        """Changes a job's budgets or priority; None leaves a value unchanged.

        `stop` replaces all stop rules.
        """
        request = messages.ExtendJobRequest(
            job=job, stop=stop, joint_steps=joint_steps, priority=priority
        )
        return self._job("ExtendJob", request)

    def delete(self, job: str) -> None:
        """Deletes a final or paused job with all its data."""
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
        """Downloads a job's table as a file, and verifies its hash.

        `epoch` None means the best table so far; `table` None means the first of several tables.
        """
        request = messages.GetRemyCCRequest(job=job, epoch=epoch, format=file_format, table=table)
        response: messages.GetRemyCCResponse = self.connection.call("GetRemyCC", request)
        if hashlib.sha256(response.content).digest() != response.sha256:
            raise ServerFailed(
                f"the downloaded RemyCC of {job} is corrupt: its SHA-256 differs from the "
                "coordinator's",
                grpc.StatusCode.DATA_LOSS,
            )
        return response

    def epochs(self, job: str) -> Sequence[job_pb2.JobEpoch]:
        """Returns a job's epochs in order, without their tables."""
        return self._call(
            messages.ListEpochsResponse, "ListEpochs", messages.ListEpochsRequest(job=job)
        ).epochs

    def worker_lines(self, job: str) -> Sequence[messages.WorkerLine]:
        """Returns the latest log lines of a job's workers, oldest first."""
        return self._call(
            messages.ListWorkerLinesResponse,
            "ListWorkerLines",
            messages.ListWorkerLinesRequest(job=job),
        ).lines

    def compare(self, jobs: Sequence[str]) -> messages.CompareJobsResponse:
        """Returns several jobs and the settings in which they differ."""
        return self._call(
            messages.CompareJobsResponse, "CompareJobs", messages.CompareJobsRequest(jobs=jobs)
        )

    def server_info(self) -> messages.GetServerInfoResponse:
        """Returns the coordinator's versions, store, evaluators and the caller's role."""
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


def _with_request_id(request: _Making) -> _Making:
    """Returns a copy of the request with a client request id, which makes it idempotent."""
    copy = type(request)()
    copy.CopyFrom(request)
    copy.client_request_id = request.client_request_id or str(uuid.uuid4())
    return copy


def _download(connection: Connection, method: str, request: Message, field: str) -> bytes:
    """Concatenates this field over a stream of responses, with retries. Raises ServiceError."""

    def receive() -> bytes:
        stream = connection.stream(method, request, deadline_seconds=_TRANSFER_SECONDS)
        try:
            return b"".join(getattr(response, field) for response in stream)
        except grpc.RpcError as error:
            raise connection.error(error) from None

    return connection.retry(receive)


def export_job(connection: Connection, job: str) -> bytes:
    """Downloads a job's archive, as a serialized SealedJobArchive, and verifies its hash.


    Raises ServiceError.
    """
    content = _download(connection, "ExportJob", messages.ExportJobRequest(job=job), "part")
    problem = archive_problem(content)
    if problem is not None:
        raise ServerFailed(
            f"the downloaded archive of {job} is corrupt: it {problem}", grpc.StatusCode.DATA_LOSS
        )
    return content


def import_job(connection: Connection, content: bytes, *, source: str) -> job_pb2.Job:
    """Imports an exported job, without retries; `source` names the archive in errors.

    Raises FileError for an invalid archive, and ServiceError.
    """
    problem = archive_problem(content)
    if problem is not None:
        raise FileError(f"{source} {problem}")
    response: messages.ImportJobResponse = connection.call_once(
        "ImportJob", _parts(content), deadline_seconds=_TRANSFER_SECONDS
    )
    return response.job


def upload_trace(connection: Connection, opportunities_us: bytes) -> None:
    """Uploads a link trace that a specification names. Raises ServiceError."""
    connection.retry(
        lambda: connection.call_once(
            "UploadTrace",
            (messages.UploadTraceRequest(part=part) for part in _split(opportunities_us)),
            deadline_seconds=_TRANSFER_SECONDS,
        )
    )


def archive_problem(content: bytes) -> str | None:
    """Returns a clause about why the archive is invalid, or None if its checksum is right."""
    try:
        sealed = job_pb2.SealedJobArchive.FromString(content)
    except DecodeError:
        return "is not an exported job"
    if not sealed.archive:
        return "is not an exported job"
    if hashlib.sha256(sealed.archive).digest() != sealed.sha256:
        return "is corrupt: its content does not match its SHA-256"
    return None


def _parts(content: bytes) -> Iterator[messages.ImportJobRequest]:
    for part in _split(content):
        yield messages.ImportJobRequest(part=part)


def _split(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), _PART_BYTES):
        yield content[start : start + _PART_BYTES]
