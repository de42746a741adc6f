"""Refusals: why a call is refused, as a gRPC status with details."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from remy_rpc.wire_format import WIRE_FORMAT, is_newer


class JobLost(Exception):
    """Another coordinator has the job now, or it was deleted: nothing may be done for it here."""


class StoreInTrouble(Exception):
    """The store takes no commits at present. One sentence that says why."""


class RequestIdTaken(Exception):
    """A client's name for a request stands for another one. One sentence for people."""


_DEFAULT_RETRY_SECONDS = 1.0


class CallRefused(Exception):
    """The call is answered with this status. The message is one sentence for people."""

    def __init__(self, code: grpc.StatusCode, message: str, *details: Message) -> None:
        super().__init__(message)
        self.code = code
        self.details = details

    async def abort(self, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        """Ends the call; raises what ends its handler."""
        status = status_pb2.Status(code=self.code.value[0], message=str(self))
        for detail in self.details:
            packed = any_pb2.Any()
            packed.Pack(detail)
            status.details.append(packed)
        translated = rpc_status.to_status(status)
        await context.abort(
            translated.code, translated.details, trailing_metadata=translated.trailing_metadata
        )


def bad_request(message: str, fields: Iterable[tuple[str, str]]) -> CallRefused:
    """The request makes no sense, by (field, what is wrong with it)."""
    violations = [
        error_details_pb2.BadRequest.FieldViolation(field=field, description=description)
        for field, description in fields
    ]
    return CallRefused(
        grpc.StatusCode.INVALID_ARGUMENT,
        message,
        error_details_pb2.BadRequest(field_violations=violations),
    )


def bad_field(field: str, problem: str) -> CallRefused:
    """One field of the request is wrong; `problem` goes on from its name."""
    return bad_request(f"{field} {problem}", [(field, problem)])


def not_now(kind: str, subject: str, message: str) -> CallRefused:
    """What was asked for cannot be done in the present state of things."""
    violation = error_details_pb2.PreconditionFailure.Violation(
        type=kind, subject=subject, description=message
    )
    return CallRefused(
        grpc.StatusCode.FAILED_PRECONDITION,
        message,
        error_details_pb2.PreconditionFailure(violations=[violation]),
    )


def other_wire_format(told: str | None) -> CallRefused:
    """The client speaks another wire format than this coordinator; None: it tells none."""
    own = version("remy-farm-services")
    theirs = "an older one, which it does not name" if told is None else f"version {told[:20]!r}"
    advice = (
        "update the farm, or use a client of its version"
        if is_newer(told)
        else f"install remy-farm-services {own} or newer, or finish with the older version"
    )
    return not_now(
        "WIRE_FORMAT",
        "client",
        f"this farm (remy-farm-services {own}) speaks wire format {WIRE_FORMAT}, and the client "
        f"{theirs}; {advice}",
    )


def not_found(kind: str, name: str, message: str) -> CallRefused:
    """There is no such thing."""
    resource = error_details_pb2.ResourceInfo(resource_type=kind, resource_name=name)
    return CallRefused(grpc.StatusCode.NOT_FOUND, message, resource)


def already_exists(kind: str, name: str, message: str) -> CallRefused:
    """There is such a thing already, and it is another one."""
    resource = error_details_pb2.ResourceInfo(resource_type=kind, resource_name=name)
    return CallRefused(grpc.StatusCode.ALREADY_EXISTS, message, resource)


def unavailable(message: str, retry_seconds: float = _DEFAULT_RETRY_SECONDS) -> CallRefused:
    """The same call may succeed a little later."""
    return CallRefused(grpc.StatusCode.UNAVAILABLE, message, _retry_info(retry_seconds))


def too_many(subject: str, message: str, retry_seconds: float | None = None) -> CallRefused:
    """A limit is reached; with the time after which another attempt makes sense, if any does."""
    violation = error_details_pb2.QuotaFailure.Violation(subject=subject, description=message)
    details: list[Message] = [error_details_pb2.QuotaFailure(violations=[violation])]
    if retry_seconds is not None:
        details.append(_retry_info(retry_seconds))
    return CallRefused(grpc.StatusCode.RESOURCE_EXHAUSTED, message, *details)


def _retry_info(seconds: float) -> error_details_pb2.RetryInfo:
    delay = duration_pb2.Duration()
    delay.FromNanoseconds(int(seconds * 1e9))
    return error_details_pb2.RetryInfo(retry_delay=delay)
