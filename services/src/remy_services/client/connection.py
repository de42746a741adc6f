"""Connections to a coordinator: channels, deadlines, and another attempt where it was away."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import grpc
from google.protobuf.message import Message

from remy_farm.v1 import design_service_pb2_grpc
from remy_services.client.settings import (
    ConnectionSettings,
    ServiceError,
    SettingsError,
    TlsSettings,
)
from remy_services.client.status import CallFailure
from remy_services.files import FileError, read_file

# How both ends of a connection notice that the other has vanished.
#
# A client pings while a call is open; a coordinator must allow pings that often, or it would take
# them for an attack and close the connection.


CLIENT_PING_SECONDS: Final = 20
PING_TIMEOUT_SECONDS: Final = 20
# With a margin for pings that queue up on the way.
SERVER_ALLOWS_PING_SECONDS: Final = 10

CLIENT_OPTIONS: Final[tuple[tuple[str, int], ...]] = (
    ("grpc.keepalive_time_ms", CLIENT_PING_SECONDS * 1000),
    ("grpc.keepalive_timeout_ms", PING_TIMEOUT_SECONDS * 1000),
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.http2.max_pings_without_data", 0),
)
SERVER_OPTIONS: Final[tuple[tuple[str, int], ...]] = (
    ("grpc.http2.min_recv_ping_interval_without_data_ms", SERVER_ALLOWS_PING_SECONDS * 1000),
    ("grpc.keepalive_time_ms", CLIENT_PING_SECONDS * 1000),
    ("grpc.keepalive_timeout_ms", PING_TIMEOUT_SECONDS * 1000),
    ("grpc.http2.max_pings_without_data", 0),
)


# A gRPC channel to a coordinator.


_MOST_PEM_BYTES = 1 << 20
_MOST_MESSAGE_BYTES = 64 << 20
_USER_AGENT = "remy-farm"
# gRPC waits up to two minutes before it tries again to connect; a coordinator starts in seconds.
_FIRST_RECONNECT_MS = 200
_LAST_RECONNECT_MS = 2000


def open_channel(settings: ConnectionSettings) -> grpc.Channel:
    """A channel that connects when it is first used. Raises SettingsError for unusable files."""
    options: list[tuple[str, str | int]] = [
        *CLIENT_OPTIONS,
        ("grpc.primary_user_agent", _USER_AGENT),
        ("grpc.max_receive_message_length", _MOST_MESSAGE_BYTES),
        ("grpc.max_send_message_length", _MOST_MESSAGE_BYTES),
        ("grpc.initial_reconnect_backoff_ms", _FIRST_RECONNECT_MS),
        ("grpc.max_reconnect_backoff_ms", _LAST_RECONNECT_MS),
        # Requests are repeated here, where the coordinator's hints are understood.
        ("grpc.enable_retries", 0),
    ]
    if settings.address.is_loopback:
        options.append(("grpc.enable_http_proxy", 0))
    target = str(settings.address)
    if settings.tls is None:
        return grpc.insecure_channel(target, options)
    if settings.tls.server_name is not None:
        options.append(("grpc.ssl_target_name_override", settings.tls.server_name))
    return grpc.secure_channel(target, _credentials(settings.tls), options)


def _credentials(tls: TlsSettings) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        root_certificates=_read(tls.ca, "--tls-ca"),
        private_key=_read(tls.key, "--tls-key"),
        certificate_chain=_read(tls.cert, "--tls-cert"),
    )


def _read(path: str | None, flag: str) -> bytes | None:
    if path is None:
        return None
    try:
        content = read_file(path, limit=_MOST_PEM_BYTES)
    except FileError as error:
        raise SettingsError(f"{flag}: {error}") from error
    if b"-----BEGIN " not in content:
        raise SettingsError(f"{flag}: {path} is not a PEM file")
    return content


# When to repeat a request that met a coordinator that was away. Pure.


@dataclass(frozen=True)
class Backoff:
    """Waits that grow, with a random part so that clients which failed together return apart."""

    first_seconds: float = 0.2
    factor: float = 1.6
    most_seconds: float = 5.0

    def delay_seconds(self, failures: int, *, jitter: float, hint_seconds: float | None) -> float:
        """How long to wait after so many failures in a row, at least 1.

        `jitter` is random in [0, 1). What the coordinator asked for in `hint_seconds` is waited for
        in full, and up to a fifth longer.
        """
        exponent = min(failures - 1, 64)
        usual = min(self.first_seconds * self.factor**exponent, self.most_seconds)
        spread = usual * (0.5 + 0.5 * jitter)
        if hint_seconds is None:
            return spread
        return max(spread, hint_seconds * (1.0 + 0.2 * jitter))


class Patience:
    """One request's attempts, as long as there is time for another."""

    def __init__(self, seconds: float, *, began_seconds: float, backoff: Backoff) -> None:
        self._ends_seconds = began_seconds + seconds
        self._backoff = backoff
        self.failures = 0

    def wait_seconds(
        self, *, now_seconds: float, jitter: float, hint_seconds: float | None = None
    ) -> float | None:
        """Another attempt failed: how long to wait for the next; None if it would come too late."""
        self.failures += 1
        delay = self._backoff.delay_seconds(self.failures, jitter=jitter, hint_seconds=hint_seconds)
        return None if now_seconds + delay > self._ends_seconds else delay


# Calls to a coordinator: with the token, a deadline, and another attempt where it was away.


DEADLINE_SECONDS = 30.0
PATIENCE_SECONDS = 10.0

_Response = TypeVar("_Response")


def say_nothing(_: str) -> None:
    """For who does not want to hear of trouble that passes."""


class Connection:
    """A channel to a coordinator that connects when it is first used.

    `on_trouble` is told in one sentence that a request is going to be repeated, once a request.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        *,
        deadline_seconds: float = DEADLINE_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
        backoff: Backoff | None = None,
        on_trouble: Callable[[str], None] = say_nothing,
    ) -> None:
        self.address = settings.address
        self.deadline_seconds = deadline_seconds
        self.patience_seconds = patience_seconds
        self._backoff = backoff or Backoff()
        token = settings.token
        self._metadata = () if token is None else (("authorization", f"Bearer {token.text}"),)
        self._on_trouble = on_trouble
        self._channel = open_channel(settings)
        self._stub = design_service_pb2_grpc.DesignServiceStub(self._channel)  # type: ignore[no-untyped-call]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends all calls."""
        self._channel.close()

    def call(self, method: str, request: Message) -> Any:
        """The response to a request that may be sent more than once. Raises ServiceError."""
        return self.repeat(lambda: self.call_once(method, request))

    def repeat(self, attempt: Callable[[], _Response]) -> _Response:
        """What `attempt` returns, which may raise grpc.RpcError.

        It is called again, for as long as there is patience, when the coordinator is away or asks
        for that. Raises ServiceError.
        """
        patience = self.patience()
        while True:
            try:
                return attempt()
            except grpc.RpcError as error:
                failure = CallFailure(error)
                trouble = self.error(failure)
                trouble.is_repeated = patience.failures > 0
                delay = self.wait_seconds(patience, failure)
                if delay is None:
                    raise trouble from None
                if patience.failures == 1:
                    self._on_trouble(f"{trouble.message}; trying again")
                time.sleep(delay)

    def call_once(self, method: str, request: Any, *, deadline_seconds: float | None = None) -> Any:
        """The response to a request, or to a stream of them, that is sent once.

        Raises grpc.RpcError.
        """
        deadline = self.deadline_seconds if deadline_seconds is None else deadline_seconds
        return getattr(self._stub, method)(request, timeout=deadline, metadata=self._metadata)

    def stream(self, method: str, request: Message, *, deadline_seconds: float | None) -> Any:
        """The stream of responses to a request; it may be iterated over and cancelled.

        Iterating raises grpc.RpcError.
        """
        call = getattr(self._stub, method)
        return call(request, timeout=deadline_seconds, metadata=self._metadata)

    def patience(self, *, is_endless: bool = False) -> Patience:
        """A new request's."""
        seconds = math.inf if is_endless else self.patience_seconds
        return Patience(seconds, began_seconds=time.monotonic(), backoff=self._backoff)

    def wait_seconds(self, patience: Patience, failure: CallFailure) -> float | None:
        """How long to wait for another attempt; None if there should be none."""
        if not failure.is_passing:
            return None
        return patience.wait_seconds(
            now_seconds=time.monotonic(),
            jitter=random.random(),
            hint_seconds=failure.retry_seconds,
        )

    def error(self, failure: CallFailure) -> ServiceError:
        """The failure as an exception."""
        return failure.error(self.address, deadline_seconds=self.deadline_seconds)
