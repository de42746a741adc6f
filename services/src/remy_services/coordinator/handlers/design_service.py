"""gRPC servicer of DesignService: checks that a call can be served and picks its handler."""

# Method names are those of the .proto file.
# ruff: noqa: N802

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import grpc

from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import design_service_pb2_grpc
from remy_services.coordinator.farm import Farm
from remy_services.coordinator.handlers import changes, evaluations, queries
from remy_services.coordinator.handlers.queries import ServerInformation, watch_job
from remy_services.coordinator.refusals import too_many, unavailable

_RETRY_SECONDS = 5.0

_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_Handler = Callable[[Farm, Any], Awaitable[Any]]

#: Handlers of unary methods: those that only read, then those that change jobs.
_QUERIES: Final[Mapping[str, _Handler]] = {
    "GetJob": queries.get_job,
    "ListJobs": queries.list_jobs,
    "GetRemyCC": queries.get_remycc,
    "ListEpochs": queries.list_epochs,
    "ListWorkerLines": queries.list_worker_lines,
    "CompareJobs": queries.compare_jobs,
}
_CHANGES: Final[Mapping[str, _Handler]] = {
    "SubmitJob": changes.submit_job,
    "ForkJob": changes.fork_job,
    "PauseJob": changes.pause_job,
    "ResumeJob": changes.resume_job,
    "CancelJob": changes.cancel_job,
    "ExtendJob": changes.extend_job,
    "DeleteJob": changes.delete_job,
}


class DesignService(design_service_pb2_grpc.DesignServiceServicer):
    """Serves DesignService for a farm."""

    def __init__(self, farm: Farm, information: ServerInformation) -> None:
        self._farm = farm
        self._information = information
        for method, handler in _QUERIES.items():
            setattr(self, method, _answering(self._readable, handler))
        for method, handler in _CHANGES.items():
            setattr(self, method, _answering(self._changeable, handler))

    async def WatchJob(
        self, request: messages.WatchJobRequest, context: _Context
    ) -> AsyncIterator[messages.WatchJobResponse]:
        with self._stream():
            async for response in watch_job(self._readable(), request):
                yield response

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
            return await changes.receive_job(self._changeable(), request_iterator)

    async def SubmitEvaluation(
        self, request_iterator: AsyncIterator[messages.SubmitEvaluationRequest], context: _Context
    ) -> messages.SubmitEvaluationResponse:
        with self._stream():
            return await evaluations.submit_evaluation(self._changeable(), request_iterator)

    async def ReadEvaluation(
        self, request: messages.ReadEvaluationRequest, context: _Context
    ) -> AsyncIterator[messages.ReadEvaluationResponse]:
        with self._stream():
            async for response in evaluations.read_evaluation(self._readable(), request):
                yield response

    async def UploadTrace(
        self, request_iterator: AsyncIterator[messages.UploadTraceRequest], context: _Context
    ) -> messages.UploadTraceResponse:
        with self._stream():
            return await changes.receive_trace(self._changeable(), request_iterator)

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
                f"{most} streams are open, which is this coordinator's limit",
                _RETRY_SECONDS,
            )
        farm.open_streams += 1
        try:
            yield
        finally:
            farm.open_streams -= 1


def _answering(farm_now: Callable[[], Farm], handler: _Handler) -> Callable[..., Awaitable[Any]]:
    async def method(request: Any, context: _Context) -> Any:
        return await handler(farm_now(), request)

    return method
