"""gRPC server metrics: calls by method and status code."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import grpc

from remy_proto.v1 import design_service_pb2, worker_service_pb2
from remy_services.telemetry import catalogue
from remy_services.telemetry.instrumentation import Instruments

_CODES = {code.value[0]: code.name for code in grpc.StatusCode}
_SERVICES = (
    design_service_pb2.DESCRIPTOR.services_by_name["DesignService"],
    worker_service_pb2.DESCRIPTOR.services_by_name["WorkerService"],
)
# Calls of unknown methods share one series, because clients can send any name.
_UNKNOWN = ("unknown", "unknown")

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Continuation: TypeAlias = "Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]]"

_MAKERS: dict[tuple[bool, bool], Callable[..., Handler]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


def behaviour_of(handler: Handler) -> Any:
    """Returns the handler's function, of any of the four call kinds."""
    return (
        handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    )


def wrapped(
    handler: Handler,
    around: Callable[[Context], AbstractAsyncContextManager[None]],
    *,
    check: Callable[[Any], Any] = lambda request: request,
    deserialize: Callable[[bytes], Any] | None = None,
) -> Handler:
    """Wraps a handler of any call kind so that every call runs inside `around`.

    `check` maps the request, or the iterator of requests, before it is passed to the handler.
    """
    behaviour = behaviour_of(handler)

    async def call(request: Any, context: Context) -> Any:
        async with around(context):
            return await behaviour(check(request), context)

    async def stream(request: Any, context: Context) -> AsyncIterator[Any]:
        async with around(context):
            async for response in behaviour(check(request), context):
                yield response

    make = _MAKERS[handler.request_streaming, handler.response_streaming]
    # A handler may also stream by writing to its context.
    function = stream if inspect.isasyncgenfunction(behaviour) else call
    return make(function, deserialize or handler.request_deserializer, handler.response_serializer)


class MeasuringInterceptor(grpc.aio.ServerInterceptor):
    """Counts and times calls. Must be the first interceptor, to also count refused calls."""

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments
        for service in _SERVICES:
            for method in service.methods:
                names = (service.full_name, method.name)
                # Exported at 0 from the start, so that `increase()` sees the first call.
                instruments.series(catalogue.GRPC_HANDLED, *names, grpc.StatusCode.OK.name)
                if not method.client_streaming and not method.server_streaming:
                    instruments.series(catalogue.GRPC_DURATION, *names)

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> Handler | None:
        handler = await continuation(handler_call_details)
        if handler is None:
            self._instruments.series(
                catalogue.GRPC_HANDLED, *_UNKNOWN, grpc.StatusCode.UNIMPLEMENTED.name
            ).inc()
            return handler
        service, _, method = handler_call_details.method.lstrip("/").rpartition("/")
        behaviour = behaviour_of(handler)
        if not (inspect.isasyncgenfunction(behaviour) or inspect.iscoroutinefunction(behaviour)):
            # A synchronous handler runs in a server thread, and its outcome is not visible here.
            return handler
        timed = not handler.request_streaming and not handler.response_streaming
        return wrapped(
            handler, lambda context: self._measured(service, method, context, timed=timed)
        )

    @asynccontextmanager
    async def _measured(
        self, service: str, method: str, context: Context, *, timed: bool
    ) -> AsyncIterator[None]:
        instruments = self._instruments
        instruments.series(catalogue.GRPC_OPEN, service, method).inc(1)
        began = time.perf_counter()
        code = grpc.StatusCode.UNKNOWN.name
        try:
            yield
            code = _code(context)
        except asyncio.CancelledError:
            code = grpc.StatusCode.CANCELLED.name
            raise
        except grpc.aio.AbortError:
            code = _code(context)
            raise
        finally:
            instruments.series(catalogue.GRPC_OPEN, service, method).inc(-1)
            instruments.series(catalogue.GRPC_HANDLED, service, method, code).inc()
            if timed:
                seconds = time.perf_counter() - began
                instruments.series(catalogue.GRPC_DURATION, service, method).observe(seconds)


def _code(context: Context) -> str:
    """Returns the name of the call's status code."""
    code: Any = context.code()
    if isinstance(code, grpc.StatusCode):
        return code.name
    return _CODES.get(code or 0, grpc.StatusCode.UNKNOWN.name)
