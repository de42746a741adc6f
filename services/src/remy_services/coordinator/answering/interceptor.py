"""What every call goes through: the door, and the last net below its handler."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

import grpc

from remy_services.coordinator.access.caller import set_caller
from remy_services.coordinator.access.doorkeeper import Doorkeeper
from remy_services.coordinator.answering.handlers import Context, Handler, guarded
from remy_services.coordinator.answering.refusal import CallRefused
from remy_services.coordinator.answering.translation import refusal_of

_Continuation: TypeAlias = "Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]]"


class Interceptor(grpc.aio.ServerInterceptor):
    """Asks the doorkeeper before anything is read, and answers for what handlers raise."""

    def __init__(self, doorkeeper: Doorkeeper) -> None:
        self._doorkeeper = doorkeeper

    async def intercept_service(
        self, continuation: _Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> Handler | None:
        method = handler_call_details.method
        try:
            caller = self._doorkeeper.admit(method, handler_call_details.invocation_metadata)
        except CallRefused as refusal:
            return _refusing(refusal)
        if caller is not None:
            # The handler runs in the same task, and thus in the same context.
            set_caller(caller)
        handler = await continuation(handler_call_details)
        if handler is None:
            return None

        async def on_error(error: Exception, context: Context) -> None:
            await refusal_of(error, method).abort(context)

        return guarded(handler, on_error)


def _refusing(refusal: CallRefused) -> Handler:
    """A handler that waits for no request."""

    async def refuse(_requests: Any, context: Context) -> AsyncIterator[Any]:
        await refusal.abort(context)
        yield None

    return grpc.stream_stream_rpc_method_handler(refuse)
