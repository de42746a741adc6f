"""The way to a Redis server, whose errors are one sentence each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import redis

from remy_services.stores.redis.address import RedisAddress
from remy_services.stores.redis.client import new_client
from remy_services.stores.redis.errors import translated

_Answer = TypeVar("_Answer")

Argument = str | bytes | int
Command = Sequence[Argument]


class RedisConnection:
    """Asks a server, from any thread. Methods raise StoreUnavailable; nothing is sent twice."""

    def __init__(
        self,
        address: RedisAddress,
        password: str | None,
        *,
        connect_seconds: float,
        answer_seconds: float,
    ) -> None:
        """Connects when it is first used. See `new_client`."""
        self.shown = address.shown
        self._client = new_client(
            address, password, connect_seconds=connect_seconds, answer_seconds=answer_seconds
        )

    def ask(self, *command: Argument) -> Any:
        """The answer to one command."""
        with self._translating():
            return self._client.execute_command(*command)  # type: ignore[no-untyped-call]

    def ask_all(self, commands: Sequence[Command], *, at_once: bool) -> list[Any]:
        """The answers to some commands, sent together; `at_once`: as they are at one moment.

        The first that is an error is raised.
        """
        with self._translating(), self._client.pipeline(transaction=at_once) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)  # type: ignore[no-untyped-call]
            # The pipeline's own way of raising writes the whole request into the message.
            answers = pipeline.execute(raise_on_error=False)
            for answer in answers:
                if isinstance(answer, redis.RedisError):
                    raise answer
            return answers

    def with_client(self, call: Callable[[redis.Redis], _Answer]) -> _Answer:
        """What a call that needs the client itself returns."""
        with self._translating():
            return call(self._client)

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except redis.RedisError as error:
            raise translated(self.shown, error) from error


def script_call(script: str, keys: Sequence[str], arguments: Sequence[Argument]) -> Command:
    """The command that carries out a Lua script."""
    return ("EVAL", script, len(keys), *keys, *arguments)
