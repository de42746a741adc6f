"""One Redis server: scripts with acknowledgements that are worth something, and reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from redis.client import Pipeline

from remy_services.stores.contract import Durability, StoreError, StoreUnavailable
from remy_services.stores.redis import scripts
from remy_services.stores.redis.address import RedisAddress
from remy_services.stores.redis.client import new_client
from remy_services.stores.redis.durability import Guarantee, counted, guarantee
from remy_services.stores.redis.errors import translated
from remy_services.stores.redis.facts import read_facts

Argument = str | bytes | int


class RedisServer:
    """Carries out scripts and waits until what they wrote is as safe as was promised."""

    def __init__(
        self,
        address: RedisAddress,
        password: str | None,
        *,
        accept_data_loss: bool,
        barrier: str,
        connect_seconds: float,
        answer_seconds: float,
    ) -> None:
        """Connects, and finds out what the server's acknowledgements are worth.

        `barrier` is a key that may be written to. Raises StoreError if the server would lose
        acknowledged writes and that is not accepted.
        """
        self.shown = address.shown
        self._address = address
        self._accept_data_loss = accept_data_loss
        self._barrier = barrier
        self._wait_milliseconds = round(1000 * answer_seconds)
        self._client = new_client(
            address,
            password,
            connect_seconds=connect_seconds,
            # The server gives up waiting first, and says so; it looks at the time now and then.
            answer_seconds=2 * answer_seconds + 1,
        )
        try:
            self._guarantee = self._promise()
        except BaseException:
            self._client.close()
            raise

    @property
    def durability(self) -> Durability:
        """What an acknowledgement is worth."""
        return self._guarantee.durability

    def renew_promise(self) -> None:
        """Asks the server again: it may be another one by now. Raises StoreError."""
        self._guarantee = self._promise()

    def read(self, *command: Argument) -> Any:
        """The answer to one command. Raises StoreUnavailable."""
        with self._translating():
            return self._client.execute_command(*command)  # type: ignore[no-untyped-call]

    def read_together(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """The answers to some commands, all of one moment. Raises StoreUnavailable."""
        with self._translating(), self._client.pipeline(transaction=True) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)  # type: ignore[no-untyped-call]
            return _answers(pipeline)

    def write(self, script: str, keys: Sequence[str], arguments: Sequence[Argument]) -> list[bytes]:
        """The script's answer, once what it wrote is safe. Raises StoreUnavailable."""
        promise = self._guarantee
        with self._translating(), self._client.pipeline(transaction=False) as pipeline:
            pipeline.eval(script, len(keys), *keys, *arguments)
            if promise.waits_for_disk or promise.waits_for_replicas:
                # A script that refuses writes nothing, and the server waits for this connection's
                # own writes only. What the refusal rests on must be safe too.
                pipeline.eval(scripts.BARRIER, 1, self._barrier)
            if promise.waits_for_disk:
                pipeline.waitaof(1, 0, self._wait_milliseconds)
            if promise.waits_for_replicas:
                pipeline.wait(promise.waits_for_replicas, self._wait_milliseconds)
            answer, *waits = _answers(pipeline)
        self._check_waits(promise, waits[1:])
        return list(answer)

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    def _check_waits(self, promise: Guarantee, waits: Sequence[Any]) -> None:
        answers = list(waits)
        seconds = self._wait_milliseconds / 1000
        if promise.waits_for_disk and answers.pop(0)[0] < 1:
            raise StoreUnavailable(
                f"Redis at {self.shown} did not force a write to its disk within {seconds:g} s"
            )
        if promise.waits_for_replicas and answers.pop(0) < promise.waits_for_replicas:
            raise StoreUnavailable(
                f"Redis at {self.shown} did not have a write on "
                f"{counted(promise.waits_for_replicas)} within {seconds:g} s"
            )

    def _promise(self) -> Guarantee:
        with self._translating():
            facts = read_facts(self._client, self.shown)
        promise = guarantee(
            facts,
            replicas=self._address.replicas,
            has_failover=self._address.service is not None,
        )
        if not promise.durability.durable and not self._accept_data_loss:
            raise StoreError(
                f"Redis at {self.shown} may lose jobs: {promise.durability.description}; change "
                "that, or accept the loss explicitly"
            )
        return promise

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except redis.RedisError as error:
            raise translated(self.shown, error) from error


def _answers(pipeline: Pipeline) -> list[Any]:
    """Carries out what is in the pipeline, and raises the first error.

    The pipeline's own way of raising writes the whole request into the message.
    """
    answers = pipeline.execute(raise_on_error=False)
    for answer in answers:
        if isinstance(answer, redis.RedisError):
            raise answer
    return answers
