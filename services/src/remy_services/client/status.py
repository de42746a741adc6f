"""Errors of failed calls: converts gRPC statuses and details to exceptions with one sentence."""

from __future__ import annotations

import re
from importlib.metadata import version

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from remy_rpc.channel import PLAINTEXT_TO_TLS
from remy_rpc.settings import Address
from remy_rpc.wire_format import WIRE_FORMAT

# Maximum number of details in a message.
_MOST_SHOWN = 8
_LONGEST_TRANSPORT_ERROR = 200
_DOCTOR = "'remy-farm doctor' looks for the cause"
_HOW_TO_GIVE_A_TOKEN = "a token is given by --token-file, REMY_FARM_TOKEN or the configuration file"

# Explanations of TLS errors in gRPC's connection errors.
_TLS_CAUSES = (
    ("WRONG_VERSION_NUMBER", "it does not speak TLS"),
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not trusted"),
    ("Hostname Verification Check failed", "its certificate is for another name"),
    ("not in peer certificate", "its certificate is for another name"),
)
# Statuses that are retryable only with RetryInfo.
_RETRYABLE_WITH_HINT = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.ABORTED)


class ServiceError(Exception):
    """A request to a coordinator failed. The message is one sentence for users."""

    def __init__(
        self,
        message: str,
        code: grpc.StatusCode,
        *,
        advice: str = "",
        is_retryable: bool = False,
        retry_seconds: float | None = None,
    ) -> None:
        super().__init__(f"{message}; {advice}" if advice else message)
        #: The error without advice.
        self.message = message
        #: Status from the coordinator or from the transport.
        self.code = code
        #: Whether a retry may succeed.
        self.is_retryable = is_retryable
        #: Retry delay requested by the coordinator, in seconds; None if it requests none.
        self.retry_seconds = retry_seconds
        #: Whether this was a retry, so that an earlier attempt may have taken effect.
        self.is_repeated = False


class Unreachable(ServiceError):
    """The coordinator is unreachable or did not answer within the deadline."""


class NotAllowed(ServiceError):
    """The token is missing, unknown, or its role is not sufficient."""


class BadRequest(ServiceError):
    """The request is invalid, whatever the state of the farm."""


class Refused(ServiceError):
    """The request cannot be served in the present state: missing job, wrong state, or limit."""


class ServerFailed(ServiceError):
    """The coordinator failed internally; its log has the details."""


_KINDS: dict[grpc.StatusCode, type[ServiceError]] = {
    grpc.StatusCode.UNAVAILABLE: Unreachable,
    grpc.StatusCode.CANCELLED: Unreachable,
    grpc.StatusCode.DEADLINE_EXCEEDED: Unreachable,
    grpc.StatusCode.UNAUTHENTICATED: NotAllowed,
    grpc.StatusCode.PERMISSION_DENIED: NotAllowed,
    grpc.StatusCode.INVALID_ARGUMENT: BadRequest,
    grpc.StatusCode.OUT_OF_RANGE: BadRequest,
    grpc.StatusCode.INTERNAL: ServerFailed,
    grpc.StatusCode.UNKNOWN: ServerFailed,
    grpc.StatusCode.DATA_LOSS: ServerFailed,
}


def older_coordinator_error(address: Address, *, is_done: bool) -> ServiceError:
    """Builds the error for a coordinator with an older wire format.

    `is_done` means that the coordinator answered, so the request may have taken effect.
    """
    client_version = version("remy-farm-services")
    return Refused(
        f"the coordinator at {address} is older than this client (remy-farm-services "
        f"{client_version}), which uses wire format {WIRE_FORMAT}"
        + (", and may have executed the request" if is_done else ""),
        grpc.StatusCode.FAILED_PRECONDITION,
        advice="update the farm, or use a client of the farm's version",
    )


def is_transport_failure(error: grpc.RpcError) -> bool:
    """Returns whether the transport failed, without an answer from the coordinator."""
    assert isinstance(error, grpc.Call)
    return error.code() == grpc.StatusCode.UNAVAILABLE and not _details(error)


def service_error(
    error: grpc.RpcError,
    address: Address,
    *,
    deadline_seconds: float | None = None,
    is_plaintext_to_tls: bool = False,
) -> ServiceError:
    """Converts a failed call to an exception, with advice if there is any.

    `is_plaintext_to_tls` means that the server uses TLS but the client used plain text.
    """
    # grpc's errors of calls also implement grpc.Call, which the type hints omit.
    assert isinstance(error, grpc.Call)
    code: grpc.StatusCode = error.code()
    kind = _KINDS.get(code, Refused)
    if is_plaintext_to_tls:
        return kind(f"the coordinator at {address} cannot be reached: {PLAINTEXT_TO_TLS}", code)
    details = _details(error)
    retry_seconds = None
    for detail in details:
        if isinstance(detail, error_details_pb2.RetryInfo):
            retry_seconds = detail.retry_delay.ToMilliseconds() / 1000
    # A coordinator that shuts down ends its calls with CANCELLED. This client never cancels a call
    # that it waits for.
    is_retryable = code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    is_retryable = is_retryable or (code in _RETRYABLE_WITH_HINT and retry_seconds is not None)
    message, advice = _sentence(code, error.details() or "", details, address, deadline_seconds)
    return kind(
        message, code, advice=advice, is_retryable=is_retryable, retry_seconds=retry_seconds
    )


def _sentence(
    code: grpc.StatusCode,
    text: str,
    details: list[Message],
    address: Address,
    deadline_seconds: float | None,
) -> tuple[str, str]:
    """Returns the error sentence and the advice, which may be empty."""
    message = _with_parts(text.rstrip("."), _parts(details))
    match code:
        case grpc.StatusCode.UNAVAILABLE if not details:
            cause = _transport_error(text)
            return f"the coordinator at {address} cannot be reached ({cause})", _DOCTOR
        case grpc.StatusCode.CANCELLED:
            return f"the coordinator at {address} ended the call ({message})", ""
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            within = "" if deadline_seconds is None else f" within {deadline_seconds:g} s"
            return f"the coordinator at {address} did not answer{within}", _DOCTOR
        case grpc.StatusCode.UNIMPLEMENTED:
            return (
                f"the server at {address} does not implement this request: it is an older "
                f"coordinator, or not a coordinator ({message})"
            ), ""
        case grpc.StatusCode.INTERNAL | grpc.StatusCode.UNKNOWN | grpc.StatusCode.DATA_LOSS:
            return f"the coordinator at {address} failed ({message}); its log says more", ""
        case grpc.StatusCode.UNAUTHENTICATED:
            return message, _HOW_TO_GIVE_A_TOKEN
    return message, ""


def _details(error: grpc.Call) -> list[Message]:
    try:
        status = rpc_status.from_call(error)
    except ValueError:
        return []
    if status is None:
        return []
    known: list[Message] = []
    for any_message in status.details:
        for kind in (
            error_details_pb2.BadRequest,
            error_details_pb2.PreconditionFailure,
            error_details_pb2.QuotaFailure,
            error_details_pb2.RetryInfo,
        ):
            detail = kind()
            if any_message.Unpack(detail):
                known.append(detail)
    return known


def _parts(details: list[Message]) -> list[tuple[str, str]]:
    """Lists the details about fields, preconditions and limits as (keyword, sentence).

    If the message contains the keyword, it already covers the detail.
    """
    parts = []
    for detail in details:
        match detail:
            case error_details_pb2.BadRequest():
                for each in detail.field_violations:
                    parts.append((each.field, f"{each.field} {each.description}"))
            case error_details_pb2.PreconditionFailure() | error_details_pb2.QuotaFailure():
                parts += [(each.description, each.description) for each in detail.violations]
    return [(keyword.strip(), part.strip().rstrip(".")) for keyword, part in parts]


def _with_parts(message: str, parts: list[tuple[str, str]]) -> str:
    """Appends the parts that the message does not already cover."""
    new = [part for keyword, part in parts if part and keyword.rstrip(".") not in message]
    shown = new[:_MOST_SHOWN]
    if len(new) > len(shown):
        shown.append(f"and {len(new) - len(shown)} more")
    if not shown:
        return message or "the coordinator refused the request without a reason"
    return f"{message}: {'; '.join(shown)}" if message else "; ".join(shown)


def _transport_error(message: str) -> str:
    """Extracts the operating system's or TLS library's error from gRPC's message."""
    for keyword, cause in _TLS_CAUSES:
        if keyword in message:
            return cause
    cause = re.split(r"last error: |; last error|Failed to connect to remote host: ", message)[-1]
    cause = re.sub(r"^\w+: ipv[46]:\S+ ", "", cause).strip() or "no answer"
    return cause[:_LONGEST_TRANSPORT_ERROR]
