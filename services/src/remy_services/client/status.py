"""What a failed call says: its gRPC status and the details with it, as one sentence."""

from __future__ import annotations

import re
from importlib.metadata import version

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from remy_rpc.channel import PLAIN_AT_TLS
from remy_rpc.settings import Address
from remy_rpc.wire_format import WIRE_FORMAT

# More would not help whoever reads the message.
_MOST_SHOWN = 8
_LONGEST_TRANSPORT_ERROR = 200
_DOCTOR = "'remy-farm doctor' looks for the cause"
_HOW_TO_GIVE_A_TOKEN = "a token is given by --token-file, REMY_FARM_TOKEN or the configuration file"

# What gRPC's account of a failed connection means, where that takes knowledge of TLS libraries.
_TLS_CAUSES = (
    ("WRONG_VERSION_NUMBER", "it does not speak TLS"),
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not trusted"),
    ("Hostname Verification Check failed", "its certificate is for another name"),
    ("not in peer certificate", "its certificate is for another name"),
)
# Where the coordinator says when to ask again.
_PASSING_WITH_HINT = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.ABORTED)


class ServiceError(Exception):
    """A request to a coordinator failed; its text is one sentence for the user."""

    def __init__(
        self,
        message: str,
        code: grpc.StatusCode,
        *,
        advice: str = "",
        is_passing: bool = False,
        retry_seconds: float | None = None,
    ) -> None:
        super().__init__(f"{message}; {advice}" if advice else message)
        #: What happened, without the advice what to do.
        self.message = message
        #: As the coordinator, or the transport in its place, has it.
        self.code = code
        #: Whether the same request may succeed a little later.
        self.is_passing = is_passing
        #: When the coordinator wants to be asked again; None if it does not say.
        self.retry_seconds = retry_seconds
        #: Whether the request had been sent before, and may have taken effect then.
        self.is_repeated = False


class Unreachable(ServiceError):
    """The coordinator could not be reached, or did not answer in time; later it may."""


class NotAllowed(ServiceError):
    """The token is missing, unknown, or has too low a role."""


class BadRequest(ServiceError):
    """What was asked for makes no sense, whatever the state of the farm."""


class Refused(ServiceError):
    """What was asked for cannot be done now: no such job, not in this state, over a limit."""


class ServerFailed(ServiceError):
    """A defect of the coordinator; its log has the details."""


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


def older_service(address: Address, *, is_done: bool) -> ServiceError:
    """The refusal of a coordinator that speaks another wire format than this client, which it has
    not refused; `is_done`: it has answered, and may have done what it was asked for."""
    own = version("remy-farm-services")
    return Refused(
        f"the coordinator at {address} is older than this client (remy-farm-services {own}), which "
        f"speaks wire format {WIRE_FORMAT}"
        + (", and may have done what it was asked for" if is_done else ""),
        grpc.StatusCode.FAILED_PRECONDITION,
        advice="update the farm, or use a client of the farm's version",
    )


def is_unanswered(error: grpc.RpcError) -> bool:
    """Whether the failure is the transport's: nobody at the other end has said anything."""
    assert isinstance(error, grpc.Call)
    return error.code() == grpc.StatusCode.UNAVAILABLE and not _details(error)


def service_error(
    error: grpc.RpcError,
    address: Address,
    *,
    deadline_seconds: float | None = None,
    is_plain_at_tls: bool = False,
) -> ServiceError:
    """The exception for a failed call, with a sentence that says what to do where that is known.

    `is_plain_at_tls`: what listens there speaks TLS, and was spoken to in plain text.
    """
    # Every error that a call raises is the call, too; the types do not say so.
    assert isinstance(error, grpc.Call)
    code: grpc.StatusCode = error.code()
    kind = _KINDS.get(code, Refused)
    if is_plain_at_tls:
        return kind(f"the coordinator at {address} cannot be reached: {PLAIN_AT_TLS}", code)
    details = _details(error)
    retry_seconds = None
    for detail in details:
        if isinstance(detail, error_details_pb2.RetryInfo):
            retry_seconds = detail.retry_delay.ToMilliseconds() / 1000
    # CANCELLED is how a coordinator that shuts down ends its calls; clients here never cancel a
    # call that they still wait for.
    is_passing = code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
    is_passing = is_passing or (code in _PASSING_WITH_HINT and retry_seconds is not None)
    message, advice = _sentence(code, error.details() or "", details, address, deadline_seconds)
    return kind(message, code, advice=advice, is_passing=is_passing, retry_seconds=retry_seconds)


def _sentence(
    code: grpc.StatusCode,
    text: str,
    details: list[Message],
    address: Address,
    deadline_seconds: float | None,
) -> tuple[str, str]:
    """What happened, and what to do, which may be empty."""
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
                f"what answers at {address} does not know this request: it is an older "
                f"coordinator than this client, or none ({message})"
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
    """What the details say of single fields, preconditions and limits, each with the words that
    show that a message says it already."""
    parts = []
    for detail in details:
        match detail:
            case error_details_pb2.BadRequest():
                for each in detail.field_violations:
                    parts.append((each.field, f"{each.field} {each.description}"))
            case error_details_pb2.PreconditionFailure() | error_details_pb2.QuotaFailure():
                parts += [(each.description, each.description) for each in detail.violations]
    return [(sign.strip(), part.strip().rstrip(".")) for sign, part in parts]


def _with_parts(message: str, parts: list[tuple[str, str]]) -> str:
    """The message and those parts that it does not say itself."""
    new = [part for sign, part in parts if part and sign.rstrip(".") not in message]
    shown = new[:_MOST_SHOWN]
    if len(new) > len(shown):
        shown.append(f"and {len(new) - len(shown)} more")
    if not shown:
        return message or "the coordinator refused and did not say why"
    return f"{message}: {'; '.join(shown)}" if message else "; ".join(shown)


def _transport_error(message: str) -> str:
    """The end of gRPC's account, which is the operating system's or the TLS library's."""
    for sign, cause in _TLS_CAUSES:
        if sign in message:
            return cause
    cause = re.split(r"last error: |; last error|Failed to connect to remote host: ", message)[-1]
    cause = re.sub(r"^\w+: ipv[46]:\S+ ", "", cause).strip() or "no answer"
    return cause[:_LONGEST_TRANSPORT_ERROR]
