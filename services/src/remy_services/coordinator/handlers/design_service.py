"""The methods of DesignService."""

# The methods are called as they are on the wire.
# ruff: noqa: N802

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import grpc

from remy_farm.v1 import design_service_pb2 as messages
from remy_farm.v1 import design_service_pb2_grpc
from remy_services.coordinator.farm import Farm
from remy_services.coordinator.handlers import changes, queries
from remy_services.coordinator.handlers.queries import ServerInformation, watch_job
from remy_services.coordinator.refusals import too_many, unavailable

_RETRY_SECONDS = 5.0

_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class DesignService(design_service_pb2_grpc.DesignServiceServicer):
    """Finds out whether a call can be answered now, and hands it on."""

    def __init__(self, farm: Farm, information: ServerInformation) -> None:
        self._farm = farm
        self._information = information

    async def SubmitJob(
        self, request: messages.SubmitJobRequest, context: _Context
    ) -> messages.SubmitJobResponse:
        job = await changes.submit_job(self._changeable(), request)
        return messages.SubmitJobResponse(job=job)

    async def GetJob(
        self, request: messages.GetJobRequest, context: _Context
    ) -> messages.GetJobResponse:
        return messages.GetJobResponse(job=await queries.get_job(self._readable(), request))

    async def ListJobs(
        self, request: messages.ListJobsRequest, context: _Context
    ) -> messages.ListJobsResponse:
        return await queries.list_jobs(self._readable(), request)

    async def WatchJob(
        self, request: messages.WatchJobRequest, context: _Context
    ) -> AsyncIterator[messages.WatchJobResponse]:
        with self._stream():
            async for response in watch_job(self._readable(), request):
                yield response

    async def PauseJob(
        self, request: messages.PauseJobRequest, context: _Context
    ) -> messages.PauseJobResponse:
        job = await changes.pause_job(self._changeable(), request)
        return messages.PauseJobResponse(job=job)

    async def ResumeJob(
        self, request: messages.ResumeJobRequest, context: _Context
    ) -> messages.ResumeJobResponse:
        job = await changes.resume_job(self._changeable(), request)
        return messages.ResumeJobResponse(job=job)

    async def CancelJob(
        self, request: messages.CancelJobRequest, context: _Context
    ) -> messages.CancelJobResponse:
        job = await changes.cancel_job(self._changeable(), request)
        return messages.CancelJobResponse(job=job)

    async def ExtendJob(
        self, request: messages.ExtendJobRequest, context: _Context
    ) -> messages.ExtendJobResponse:
        job = await changes.extend_job(self._changeable(), request)
        return messages.ExtendJobResponse(job=job)

    async def ForkJob(
        self, request: messages.ForkJobRequest, context: _Context
    ) -> messages.ForkJobResponse:
        job = await changes.fork_job(self._changeable(), request)
        return messages.ForkJobResponse(job=job)

    async def DeleteJob(
        self, request: messages.DeleteJobRequest, context: _Context
    ) -> messages.DeleteJobResponse:
        await changes.delete_job(self._changeable(), request)
        return messages.DeleteJobResponse()

    async def GetRemyCC(
        self, request: messages.GetRemyCCRequest, context: _Context
    ) -> messages.GetRemyCCResponse:
        return await queries.get_remycc(self._readable(), request)

    async def ListEpochs(
        self, request: messages.ListEpochsRequest, context: _Context
    ) -> messages.ListEpochsResponse:
        return await queries.list_epochs(self._readable(), request)

    async def CompareJobs(
        self, request: messages.CompareJobsRequest, context: _Context
    ) -> messages.CompareJobsResponse:
        return await queries.compare_jobs(self._readable(), request)

    async def ExportJob(
        self, request: messages.ExportJobRequest, context: _Context
    ) -> AsyncIterator[messages.ExportJobResponse]:
        with self._stream():
            async for response in changes.send_job(self._readable(), request):
                yield response

    async def ImportJob(
        self, request_iterator: AsyncIterator[messages.ImportJobRequest], context: _Context
    ) -> messages.ImportJobResponse:
        with self._stream():
            job = await changes.receive_job(self._changeable(), request_iterator)
            return messages.ImportJobResponse(job=job)

    async def GetServerInfo(
        self, request: messages.GetServerInfoRequest, context: _Context
    ) -> messages.GetServerInfoResponse:
        return self._information.response()

    def _readable(self) -> Farm:
        if self._farm.not_ready:
            raise unavailable(self._farm.not_ready)
        return self._farm

    def _changeable(self) -> Farm:
        if self._farm.closing:
            raise unavailable(self._farm.closing, _RETRY_SECONDS)
        return self._readable()

    @contextmanager
    def _stream(self) -> Iterator[None]:
        farm, most = self._farm, self._farm.settings.calls.open_streams
        if farm.open_streams >= most:
            raise too_many(
                "streams",
                f"{most} streams are open here, as many as may be at once",
                _RETRY_SECONDS,
            )
        farm.open_streams += 1
        try:
            yield
        finally:
            farm.open_streams -= 1
