"""Middleware: what every call goes through, whatever its kind."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import structlog
from google.protobuf.message import DecodeError

from remy_farm.designer import DesignerError
from remy_farm.specification import SpecError
from remy_rpc.wire_format import WIRE_FORMAT, WIRE_FORMAT_METADATA, told_wire_format
from remy_services.coordinator import refusals
from remy_services.coordinator.access import DESIGN_SERVICE, Authorizer, set_caller
from remy_services.coordinator.refusals import CallRefused, JobLost, RequestIdTaken, StoreInTrouble
from remy_services.jobs.requests import AmbiguousName, BadPageToken, NoSuchJob
from remy_services.jobs.states import NotNow
from remy_services.stores.contract import JobMissing, StoreUnavailable
from remy_services.telemetry.grpc_metrics import Context, Continuation, Handler, wrapped


class UndecodableRequest(Exception):
    """The request is not a message of its type; takes its place until a handler would have it."""


def _checked(request: Any) -> Any:
    if isinstance(request, UndecodableRequest):
        raise request
    return _all_checked(request) if hasattr(request, "__aiter__") else request


async def _all_checked(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield _checked(request)


_log = structlog.get_logger()


def refusal_of(error: Exception, method: str) -> CallRefused:
    """The refusal that callers see. What nobody expected is logged, and they see its id alone."""
    match error:
        case CallRefused():
            return error
        case SpecError():
            return refusals.bad_request(
                str(error), [(each.path or "spec", each.problem) for each in error.violations]
            )
        case UndecodableRequest():
            return CallRefused(
                grpc.StatusCode.INVALID_ARGUMENT, "the request is not a message of its type"
            )
        case NotNow():
            return refusals.not_now("JOB_STATE", "", str(error))
        case NoSuchJob() | JobMissing():
            return refusals.not_found("remy_farm.v1.Job", "", str(error))
        case AmbiguousName():
            return refusals.bad_request(str(error), [("job", "is not unambiguous")])
        case RequestIdTaken():
            return refusals.already_exists("remy_farm.v1.Job", "", str(error))
        case BadPageToken():
            return refusals.bad_field("page_token", "is not one that a response came with")
        case DesignerError():
            return refusals.bad_request(str(error), [("spec", str(error))])
        case StoreUnavailable() | StoreInTrouble():
            return refusals.unavailable(f"the store is not available: {error}")
        case JobLost():
            return refusals.unavailable(f"this coordinator does not have the job: {error}")
    error_id = secrets.token_hex(4)
    _log.error("a call failed unexpectedly", method=method, error_id=error_id, exc_info=error)
    return CallRefused(grpc.StatusCode.INTERNAL, f"internal error, id {error_id}")


def require_wire_format(method: str, metadata: Iterable[tuple[str, str | bytes]] | None) -> None:
    """Refuses a client that speaks another wire format; workers tell theirs in `Hello`, and health
    and reflection are anybody's. Raises CallRefused."""
    if method.startswith(DESIGN_SERVICE):
        told = told_wire_format(metadata)
        if told != str(WIRE_FORMAT):
            raise refusals.other_wire_format(told)


class Interceptor(grpc.aio.ServerInterceptor):
    """Asks the authorizer before anything is read, and answers for what handlers raise."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> Handler | None:
        method = handler_call_details.method
        try:
            caller = self._authorizer.admit(method, handler_call_details.invocation_metadata)
            require_wire_format(method, handler_call_details.invocation_metadata)
        except CallRefused as refusal:
            return _refusing(refusal)
        if caller is not None:
            # The handler runs in the same task, and thus in the same context.
            set_caller(caller)
        handler = await continuation(handler_call_details)
        if handler is None:
            return None

        def deserialize(data: bytes) -> Any:
            try:
                return handler.request_deserializer(data) if handler.request_deserializer else data
            except DecodeError:
                return UndecodableRequest()

        @asynccontextmanager
        async def refusing(context: Context) -> AsyncIterator[None]:
            try:
                if method.startswith(DESIGN_SERVICE):
                    await context.send_initial_metadata(WIRE_FORMAT_METADATA)
                yield
            except grpc.aio.AbortError:
                raise
            except Exception as error:
                await refusal_of(error, method).abort(context)

        return wrapped(handler, refusing, check=_checked, deserialize=deserialize)


def _refusing(refusal: CallRefused) -> Handler:
    """A handler that waits for no request."""

    async def refuse(_requests: Any, context: Context) -> AsyncIterator[Any]:
        await context.send_initial_metadata(WIRE_FORMAT_METADATA)
        await refusal.abort(context)
        yield None

    return grpc.stream_stream_rpc_method_handler(refuse)
