"""gRPC interceptor: authorization, wire-format check, and translation of errors to statuses."""

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
from remy_rpc.wire_format import WIRE_FORMAT, WIRE_FORMAT_METADATA, peer_wire_format
from remy_services.coordinator import refusals
from remy_services.coordinator.access import DESIGN_SERVICE, Authorizer, set_caller
from remy_services.coordinator.refusals import CallRefused, JobLost, RequestIdTaken, StoreDegraded
from remy_services.jobs.requests import AmbiguousName, BadPageToken, NoSuchJob
from remy_services.jobs.states import WrongState
from remy_services.stores.contract import JobMissing, StoreUnavailable
from remy_services.telemetry.grpc_metrics import Context, Continuation, Handler, wrapped


class UndecodableRequest(Exception):
    """The request could not be decoded.

    Passed on in place of the request, and raised when the handler reads it.
    """


def _checked(request: Any) -> Any:
    if isinstance(request, UndecodableRequest):
        raise request
    return _all_checked(request) if hasattr(request, "__aiter__") else request


async def _all_checked(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield _checked(request)


_log = structlog.get_logger()


def refusal_of(error: Exception, method: str) -> CallRefused:
    """Translates an exception to the status that the caller receives.

    Unexpected exceptions are logged under a random id, and the caller receives only the id.
    """
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
        case WrongState():
            return refusals.failed_precondition("JOB_STATE", "", str(error))
        case NoSuchJob() | JobMissing():
            return refusals.not_found("remy_farm.v1.Job", "", str(error))
        case AmbiguousName():
            return refusals.bad_request(str(error), [("job", "is ambiguous")])
        case RequestIdTaken():
            return refusals.already_exists("remy_farm.v1.Job", "", str(error))
        case BadPageToken():
            return refusals.invalid_field("page_token", "is not a token from an earlier response")
        case DesignerError():
            return refusals.bad_request(str(error), [("spec", str(error))])
        case StoreUnavailable() | StoreDegraded():
            return refusals.unavailable(f"the store is not available: {error}")
        case JobLost():
            return refusals.unavailable(f"this coordinator does not hold the job: {error}")
    error_id = secrets.token_hex(4)
    _log.error("a call failed unexpectedly", method=method, error_id=error_id, exc_info=error)
    return CallRefused(grpc.StatusCode.INTERNAL, f"internal error, id {error_id}")


def require_wire_format(method: str, metadata: Iterable[tuple[str, str | bytes]] | None) -> None:
    """Raises CallRefused for a DesignService client with another wire format.

    Workers state theirs in `Hello`; health and reflection do not depend on it.
    """
    if method.startswith(DESIGN_SERVICE):
        version = peer_wire_format(metadata)
        if version != str(WIRE_FORMAT):
            raise refusals.wire_format_mismatch(version)


class Interceptor(grpc.aio.ServerInterceptor):
    """Authorizes each call before its request is read, and turns exceptions into statuses."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> Handler | None:
        method = handler_call_details.method
        try:
            caller = self._authorizer.authorize(method, handler_call_details.invocation_metadata)
            require_wire_format(method, handler_call_details.invocation_metadata)
        except CallRefused as refusal:
            return _refusing(refusal)
        if caller is not None:
            # The handler runs in the same task, and therefore sees this context variable.
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
    """Returns a handler that refuses the call without reading a request."""

    async def refuse(_requests: Any, context: Context) -> AsyncIterator[Any]:
        await context.send_initial_metadata(WIRE_FORMAT_METADATA)
        await refusal.abort(context)
        yield None

    return grpc.stream_stream_rpc_method_handler(refuse)
