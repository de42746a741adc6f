"""What a failed call says: its gRPC status and the details with it, as one sentence."""

from __future__ import annotations

import re

import grpc
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from remy_services.client.settings import (
    Address,
    BadRequest,
    NotAllowed,
    Refused,
    ServerFailed,
    ServiceError,
    Unreachable,
)

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
# Where the coordinator says when to ask again.
_PASSING_WITH_HINT = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.ABORTED)


class CallFailure:
    """A failed call, taken apart."""

    def __init__(self, error: grpc.RpcError) -> None:
        # Every error that a call raises is the call, too; the types do not say so.
        assert isinstance(error, grpc.Call)
        self.code: grpc.StatusCode = error.code()
        self._message: str = error.details() or ""
        self._details: list[Message] = _details(error)

    @property
    def retry_seconds(self) -> float | None:
        """When the coordinator wants to be asked again; None if it does not say."""
        for detail in self._details:
            if isinstance(detail, error_details_pb2.RetryInfo):
                milliseconds: int = detail.retry_delay.ToMilliseconds()
                return milliseconds / 1000
        return None

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed a little later.

        CANCELLED is how a coordinator that shuts down ends its calls; clients here never cancel a
        call that they still wait for.
        """
        if self.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
            return True
        return self.code in _PASSING_WITH_HINT and self.retry_seconds is not None

    def error(self, address: Address, *, deadline_seconds: float | None = None) -> ServiceError:
        """The exception for it, with a sentence that says what to do where that is known."""
        kind = _KINDS.get(self.code, Refused)
        message = self._sentence(address, deadline_seconds)
        return kind(message, self.code, advice=self._advice())

    def _sentence(self, address: Address, deadline_seconds: float | None) -> str:
        message = _with_parts(self._message.rstrip("."), _parts(self._details))
        match self.code:
            case grpc.StatusCode.UNAVAILABLE if not self._details:
                cause = _transport_error(self._message)
                return f"the coordinator at {address} cannot be reached ({cause})"
            case grpc.StatusCode.CANCELLED:
                return f"the coordinator at {address} ended the call ({message})"
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                within = "" if deadline_seconds is None else f" within {deadline_seconds:g} s"
                return f"the coordinator at {address} did not answer{within}"
            case grpc.StatusCode.UNIMPLEMENTED:
                return (
                    f"what answers at {address} does not know this request: it is an older "
                    f"coordinator than this client, or none ({message})"
                )
            case grpc.StatusCode.INTERNAL | grpc.StatusCode.UNKNOWN | grpc.StatusCode.DATA_LOSS:
                return f"the coordinator at {address} failed ({message}); its log says more"
        return message

    def _advice(self) -> str:
        match self.code:
            case grpc.StatusCode.UNAVAILABLE if not self._details:
                return _DOCTOR
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                return _DOCTOR
            case grpc.StatusCode.UNAUTHENTICATED:
                return _HOW_TO_GIVE_A_TOKEN
        return ""


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
