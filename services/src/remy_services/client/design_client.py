"""The requests of DesignService as functions."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Sequence

import grpc
from google.protobuf.message import Message

from remy_farm.v1 import design_service_pb2 as messages
from remy_farm.v1 import job_pb2, spec_pb2
from remy_services.client.connection import Connection
from remy_services.client.errors import Refused, ServerFailed

_PAGE_SIZE = 500


class DesignClient:
    """What can be asked of a coordinator. A job is named by its id, or by an unambiguous name.

    Every method raises ServiceError. All requests may be repeated: what makes a job carries an id
    of its own, so that a repeat makes nothing new.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def submit(self, request: messages.SubmitJobRequest) -> job_pb2.Job:
        """Stores a new job, unless the request is only to be checked."""
        repeatable = messages.SubmitJobRequest()
        repeatable.CopyFrom(request)
        repeatable.client_request_id = request.client_request_id or str(uuid.uuid4())
        return self._job("SubmitJob", repeatable)

    def fork(self, request: messages.ForkJobRequest) -> job_pb2.Job:
        """A new job that begins with the table of another's epoch."""
        repeatable = messages.ForkJobRequest()
        repeatable.CopyFrom(request)
        repeatable.client_request_id = request.client_request_id or str(uuid.uuid4())
        return self._job("ForkJob", repeatable)

    def get(self, job: str) -> job_pb2.Job:
        """The job as it is now, with its specification."""
        return self._job("GetJob", messages.GetJobRequest(job=job))

    def list(self, request: messages.ListJobsRequest) -> messages.ListJobsResponse:
        """One page of jobs, newest first."""
        response: messages.ListJobsResponse = self.connection.call("ListJobs", request)
        return response

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
        self, job: str, *, stop: spec_pb2.Stop | None, joint_steps: int | None
    ) -> job_pb2.Job:
        """Changes a job's budgets: new stop rules in place of the old; None leaves them."""
        request = messages.ExtendJobRequest(job=job, stop=stop, joint_steps=joint_steps)
        return self._job("ExtendJob", request)

    def delete(self, job: str) -> None:
        """Removes a job that is in a final state or paused, with everything stored of it."""
        try:
            self.connection.call("DeleteJob", messages.DeleteJobRequest(job=job))
        except Refused as error:
            if not (error.is_repeated and error.code == grpc.StatusCode.NOT_FOUND):
                raise

    def remycc(
        self, job: str, *, epoch: int | None, file_format: messages.RemyCCFormat
    ) -> messages.GetRemyCCResponse:
        """A job's table at an epoch, or the best so far, as a file whose digest was checked."""
        response: messages.GetRemyCCResponse = self.connection.call(
            "GetRemyCC", messages.GetRemyCCRequest(job=job, epoch=epoch, format=file_format)
        )
        if hashlib.sha256(response.content).digest() != response.sha256:
            raise ServerFailed(
                f"the RemyCC of {job} arrived damaged: its SHA-256 is not the coordinator's",
                grpc.StatusCode.DATA_LOSS,
            )
        return response

    def epochs(self, job: str) -> Sequence[job_pb2.JobEpoch]:
        """A job's epochs in order, without their tables."""
        response: messages.ListEpochsResponse = self.connection.call(
            "ListEpochs", messages.ListEpochsRequest(job=job)
        )
        return response.epochs

    def compare(self, jobs: Sequence[str]) -> messages.CompareJobsResponse:
        """Jobs side by side."""
        response: messages.CompareJobsResponse = self.connection.call(
            "CompareJobs", messages.CompareJobsRequest(jobs=jobs)
        )
        return response

    def server_info(self) -> messages.GetServerInfoResponse:
        """What serves there, and how it is set up."""
        response: messages.GetServerInfoResponse = self.connection.call(
            "GetServerInfo", messages.GetServerInfoRequest()
        )
        return response

    def _job(self, method: str, request: Message) -> job_pb2.Job:
        job: job_pb2.Job = self.connection.call(method, request).job
        return job
