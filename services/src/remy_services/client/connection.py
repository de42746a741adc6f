"""Calls to a coordinator: with the token, a deadline, and another attempt where it was away."""

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
    told_wire_format,
)
from remy_services.client.settings import PATIENCE_SECONDS, ConnectionSettings
from remy_services.client.status import (
    ServiceError,
    is_unanswered,
    older_service,
    service_error,
)

DEADLINE_SECONDS = 30.0

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
        retry: RetryPolicy | None = None,
        on_trouble: Callable[[str], None] = say_nothing,
    ) -> None:
        self.address = settings.address
        self.deadline_seconds = deadline_seconds
        self.patience_seconds = patience_seconds
        self._retry = retry or RetryPolicy()
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
        """Ends all calls."""
        self._channel.close()

    def call(self, method: str, request: Message) -> Any:
        """The response to a request that may be sent more than once. Raises ServiceError."""
        return self.repeat(lambda: self.call_once(method, request))

    def repeat(self, attempt: Callable[[], _Response]) -> _Response:
        """What `attempt` returns, which is called again, for as long as there is patience, when the
        coordinator is away or asks for that. Raises ServiceError."""

        def tell(state: tenacity.RetryCallState) -> None:
            trouble = failure_of(state)
            if state.attempt_number == 1 and isinstance(trouble, ServiceError):
                self._on_trouble(f"{trouble.message}; trying again")

        for each in self.retrying(timeout_seconds=self.patience_seconds, before_sleep=tell):
            with each:
                try:
                    return attempt()
                except ServiceError as trouble:
                    trouble.is_repeated = each.retry_state.attempt_number > 1
                    raise
        raise AssertionError("the last attempt raises what went wrong")

    def retrying(self, **options: Any) -> tenacity.Retrying:
        """Attempts for as long as the coordinator is away. See RetryPolicy.retrying."""
        return self._retry.retrying(
            lambda error: isinstance(error, ServiceError) and error.is_passing,
            hint_seconds=lambda error: getattr(error, "retry_seconds", None),
            **options,
        )

    def call_once(self, method: str, request: Any, *, deadline_seconds: float | None = None) -> Any:
        """The response to a request, or to a stream of them, that is sent once.

        Raises ServiceError.
        """
        deadline = self.deadline_seconds if deadline_seconds is None else deadline_seconds
        try:
            response, call = getattr(self._stub, method).with_call(
                request, timeout=deadline, metadata=self._metadata
            )
        except grpc.RpcError as error:
            raise self.error(error) from None
        if told_wire_format(call.initial_metadata()) != str(WIRE_FORMAT):
            raise older_service(self.address, is_done=True)
        return complete(response)

    def stream(self, method: str, request: Message, *, deadline_seconds: float | None) -> Any:
        """The stream of responses to a request; it may be iterated over and cancelled.

        Iterating raises grpc.RpcError.
        """
        call = getattr(self._stub, method)
        return call(request, timeout=deadline_seconds, metadata=self._metadata)

    def error(self, error: grpc.RpcError) -> ServiceError:
        """What went wrong with a call, as one sentence."""
        assert isinstance(error, grpc.Call)
        # An older coordinator refuses, for another reason, what it does not understand.
        if (
            error.code() == grpc.StatusCode.INVALID_ARGUMENT
            and told_wire_format(error.initial_metadata()) is None
        ):
            return older_service(self.address, is_done=False)
        return service_error(
            error,
            self.address,
            deadline_seconds=self.deadline_seconds,
            is_plain_at_tls=self._is_plain and is_unanswered(error) and speaks_tls(self.address),
        )
