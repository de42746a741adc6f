"""Errors of calls: exceptions, and gRPC statuses with details."""

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
    """This coordinator no longer holds the job: another one acquired it, or it was deleted."""


class StoreDegraded(Exception):
    """The store does not accept commits at present. The message says why in one sentence."""


class RequestIdTaken(Exception):
    """A client request id was used for a different request. The message is one sentence."""


_DEFAULT_RETRY_SECONDS = 1.0


class CallRefused(Exception):
    """A call ends with this gRPC status. The message is one sentence for users."""

    def __init__(self, code: grpc.StatusCode, message: str, *details: Message) -> None:
        super().__init__(message)
        self.code = code
        self.details = details

    async def abort(self, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        """Aborts the call with the status. Always raises."""
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
    """Builds INVALID_ARGUMENT with a violation for each (field, description)."""
    violations = [
        error_details_pb2.BadRequest.FieldViolation(field=field, description=description)
        for field, description in fields
    ]
    return CallRefused(
        grpc.StatusCode.INVALID_ARGUMENT,
        message,
        error_details_pb2.BadRequest(field_violations=violations),
    )


def invalid_field(field: str, problem: str) -> CallRefused:
    """Builds INVALID_ARGUMENT for one field. The message is the field's name and `problem`."""
    return bad_request(f"{field} {problem}", [(field, problem)])


def failed_precondition(kind: str, subject: str, message: str) -> CallRefused:
    """Builds FAILED_PRECONDITION."""
    violation = error_details_pb2.PreconditionFailure.Violation(
        type=kind, subject=subject, description=message
    )
    return CallRefused(
        grpc.StatusCode.FAILED_PRECONDITION,
        message,
        error_details_pb2.PreconditionFailure(violations=[violation]),
    )


def wire_format_mismatch(peer_version: str | None) -> CallRefused:
    """Builds the refusal of a client with another wire format; None if it sent no version."""
    farm_version = version("remy-farm-services")
    peer = "an older, unnamed one" if peer_version is None else f"version {peer_version[:20]!r}"
    advice = (
        "update the farm, or use a client of its version"
        if is_newer(peer_version)
        else f"install remy-farm-services {farm_version} or newer, or finish the work with the "
        "older version"
    )
    return failed_precondition(
        "WIRE_FORMAT",
        "client",
        f"this farm (remy-farm-services {farm_version}) uses wire format {WIRE_FORMAT}, but the "
        f"client uses {peer}; {advice}",
    )


def not_found(kind: str, name: str, message: str) -> CallRefused:
    """Builds NOT_FOUND."""
    resource = error_details_pb2.ResourceInfo(resource_type=kind, resource_name=name)
    return CallRefused(grpc.StatusCode.NOT_FOUND, message, resource)


def already_exists(kind: str, name: str, message: str) -> CallRefused:
    """Builds ALREADY_EXISTS."""
    resource = error_details_pb2.ResourceInfo(resource_type=kind, resource_name=name)
    return CallRefused(grpc.StatusCode.ALREADY_EXISTS, message, resource)


def unavailable(message: str, retry_seconds: float = _DEFAULT_RETRY_SECONDS) -> CallRefused:
    """Builds UNAVAILABLE, which tells clients to retry after `retry_seconds`."""
    return CallRefused(grpc.StatusCode.UNAVAILABLE, message, _retry_info(retry_seconds))


def too_many(subject: str, message: str, retry_seconds: float | None = None) -> CallRefused:
    """Builds RESOURCE_EXHAUSTED; `retry_seconds` None means that a retry does not help."""
    violation = error_details_pb2.QuotaFailure.Violation(subject=subject, description=message)
    details: list[Message] = [error_details_pb2.QuotaFailure(violations=[violation])]
    if retry_seconds is not None:
        details.append(_retry_info(retry_seconds))
    return CallRefused(grpc.StatusCode.RESOURCE_EXHAUSTED, message, *details)


def _retry_info(seconds: float) -> error_details_pb2.RetryInfo:
    delay = duration_pb2.Duration()
    delay.FromNanoseconds(int(seconds * 1e9))
    return error_details_pb2.RetryInfo(retry_delay=delay)
