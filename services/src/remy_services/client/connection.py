"""Calls to a coordinator, with token, deadline and retries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeVar

import grpc
import tenacity
from google.protobuf.message import Message

from remy_proto.completion import complete
from remy_proto.v1 import design_service_pb2_grpc
from remy_rpc.channel import open_channel, speaks_tls
from remy_rpc.retry import RetryPolicy, failure_of
from remy_rpc.settings import call_metadata
from remy_rpc.wire_format import (
    WIRE_FORMAT,
    WIRE_FORMAT_METADATA,
    peer_wire_format,
)
from remy_services.client.settings import PATIENCE_SECONDS, ConnectionSettings
from remy_services.client.status import (
    ServiceError,
    is_transport_failure,
    older_coordinator_error,
    service_error,
)

DEADLINE_SECONDS = 30.0

_Response = TypeVar("_Response")


def ignore_message(_: str) -> None:
    """Ignores a message. Default for `on_trouble`."""


class Connection:
    """A lazily connected channel to a coordinator.

    `patience_seconds` limits the retries of a request. `on_trouble` gets one sentence before the
    first retry of each request.
    """

    def __init__(
        self,
        settings: ConnectionSettings,
        *,
        deadline_seconds: float = DEADLINE_SECONDS,
        patience_seconds: float = PATIENCE_SECONDS,
        retry: RetryPolicy | None = None,
        on_trouble: Callable[[str], None] = ignore_message,
    ) -> None:
        self.address = settings.address
        self.deadline_seconds = deadline_seconds
        self.patience_seconds = patience_seconds
        self._policy = retry or RetryPolicy()
        self._is_plain = settings.tls is None
        self._metadata = (*call_metadata(settings.token), *WIRE_FORMAT_METADATA)
        self._on_trouble = on_trouble
        self._channel = open_channel(settings.address, settings.tls, user_agent="remy-farm")
        self._stub = design_service_pb2_grpc.DesignServiceStub(self._channel)  # type: ignore[no-untyped-call]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the channel and cancels its calls."""
        self._channel.close()

    def call(self, method: str, request: Message) -> Any:
        """Sends an idempotent request, with retries; returns its response. Raises ServiceError."""
        return self.retry(lambda: self.call_once(method, request))

    def retry(self, attempt: Callable[[], _Response]) -> _Response:
        """Calls `attempt` with retries of retryable errors, for up to `patience_seconds`.

        Raises ServiceError.
        """

        def report(state: tenacity.RetryCallState) -> None:
            trouble = failure_of(state)
            if state.attempt_number == 1 and isinstance(trouble, ServiceError):
                self._on_trouble(f"{trouble.message}; trying again")

        for each in self.retrying(timeout_seconds=self.patience_seconds, before_sleep=report):
            with each:
                try:
                    return attempt()
                except ServiceError as trouble:
                    trouble.is_repeated = each.retry_state.attempt_number > 1
                    raise
        raise AssertionError("the last attempt raises its error")

    def retrying(self, **options: Any) -> tenacity.Retrying:
        """Returns an iterator of attempts that retries retryable errors.

        See RetryPolicy.retrying.
        """
        return self._policy.retrying(
            lambda error: isinstance(error, ServiceError) and error.is_retryable,
            hint_seconds=lambda error: getattr(error, "retry_seconds", None),
            **options,
        )

    def call_once(self, method: str, request: Any, *, deadline_seconds: float | None = None) -> Any:
        """Sends a request, or a stream of requests, without retries; returns the response.


        Raises ServiceError.
        """
        deadline = self.deadline_seconds if deadline_seconds is None else deadline_seconds
        try:
            response, call = getattr(self._stub, method).with_call(
                request, timeout=deadline, metadata=self._metadata
            )
        except grpc.RpcError as error:
            raise self.error(error) from None
        if peer_wire_format(call.initial_metadata()) != str(WIRE_FORMAT):
            raise older_coordinator_error(self.address, is_done=True)
        return complete(response)

    def stream(self, method: str, request: Message, *, deadline_seconds: float | None) -> Any:
        """Starts a call with a stream of responses, which can be iterated and cancelled.


        Iterating raises grpc.RpcError.
        """
        call = getattr(self._stub, method)
        return call(request, timeout=deadline_seconds, metadata=self._metadata)

    def error(self, error: grpc.RpcError) -> ServiceError:
        """Converts the error of a call to a ServiceError."""
        assert isinstance(error, grpc.Call)
        # A coordinator with an older wire format fails with INVALID_ARGUMENT and sends no version.
        if (
            error.code() == grpc.StatusCode.INVALID_ARGUMENT
            and peer_wire_format(error.initial_metadata()) is None
        ):
            return older_coordinator_error(self.address, is_done=False)
        return service_error(
            error,
            self.address,
            deadline_seconds=self.deadline_seconds,
            is_plaintext_to_tls=self._is_plain
            and is_transport_failure(error)
            and speaks_tls(self.address),
        )
