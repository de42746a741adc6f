"""Calls to a coordinator: with the token, a deadline, and another attempt where it was away."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc
from google.protobuf.message import Message

from remy_farm.v1 import design_service_pb2_grpc
from remy_services.client.channel import open_channel
from remy_services.client.errors import ServiceError
from remy_services.client.retrying import Backoff, Patience
from remy_services.client.settings import ConnectionSettings
from remy_services.client.status import CallFailure

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
