"""Handlers of calls with something around them, whatever their kind."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import DecodeError

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
#: Is told what a handler raised, and ends the call.
OnError = Callable[[Exception, Context], Awaitable[None]]


class Undecodable:
    """Stands for a request that is not a message of its type."""


class UndecodableRequest(Exception):
    """The request could not be read."""


def guarded(handler: Handler, on_error: OnError) -> Handler:
    """The handler, with `on_error` told of everything that it raises, and of requests that could
    not be read."""
    behaviour: Any = (
        handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    )

    def deserialize(data: bytes) -> Any:
        try:
            return handler.request_deserializer(data) if handler.request_deserializer else data
        except DecodeError:
            return Undecodable()

    async def call(request: Any, context: Context) -> Any:
        try:
            return await behaviour(_checked(request), context)
        except grpc.aio.AbortError:
            raise
        except Exception as error:
            await on_error(error, context)

    async def stream(request: Any, context: Context) -> AsyncIterator[Any]:
        try:
            async for response in behaviour(_checked(request), context):
                yield response
        except grpc.aio.AbortError:
            raise
        except Exception as error:
            await on_error(error, context)

    make = _MAKERS[handler.request_streaming, handler.response_streaming]
    # A handler may also stream by writing to its context.
    wrapped = stream if inspect.isasyncgenfunction(behaviour) else call
    return make(wrapped, deserialize, handler.response_serializer)


_MAKERS: dict[tuple[bool, bool], Callable[..., Handler]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


def _checked(request: Any) -> Any:
    if isinstance(request, Undecodable):
        raise UndecodableRequest
    return _all_checked(request) if hasattr(request, "__aiter__") else request


async def _all_checked(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield _checked(request)
