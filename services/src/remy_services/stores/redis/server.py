"""A Redis server that keeps jobs: what its acknowledgements are worth is known and seen to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remy_services.stores.contract import Durability, StoreError, StoreUnavailable
from remy_services.stores.redis import scripts
from remy_services.stores.redis.address import RedisAddress
from remy_services.stores.redis.connection import Argument, Command, RedisConnection, script_call
from remy_services.stores.redis.durability import Guarantee, counted, guarantee
from remy_services.stores.redis.facts import read_facts


class RedisServer:
    """Carries out scripts, and waits until what they wrote is as safe as was promised."""

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
        self._address = address
        self._accept_data_loss = accept_data_loss
        self._barrier = barrier
        self._wait_milliseconds = round(1000 * answer_seconds)
        self._connection = RedisConnection(
            address,
            password,
            connect_seconds=connect_seconds,
            # The server gives up waiting first, and says so; it looks at the time now and then.
            answer_seconds=2 * answer_seconds + 1,
        )
        try:
            self._guarantee = self._promise()
        except BaseException:
            self._connection.close()
            raise

    @property
    def shown(self) -> str:
        """The server's address, for people."""
        return self._address.shown

    @property
    def durability(self) -> Durability:
        """What an acknowledgement is worth."""
        return self._guarantee.durability

    def renew_promise(self) -> None:
        """Asks the server again: it may be another one by now. Raises StoreError."""
        self._guarantee = self._promise()

    def read(self, *command: Argument) -> Any:
        """The answer to one command. Raises StoreUnavailable."""
        return self._connection.ask(*command)

    def read_together(self, commands: Sequence[Command]) -> list[Any]:
        """The answers to some commands, all of one moment. Raises StoreUnavailable."""
        return self._connection.ask_all(commands, at_once=True)

    def write(self, script: str, keys: Sequence[str], arguments: Sequence[Argument]) -> list[bytes]:
        """The script's answer, once what it wrote is safe. Raises StoreUnavailable."""
        promise = self._guarantee
        waits: list[Command] = []
        if promise.waits_for_disk:
            waits.append(("WAITAOF", 1, 0, self._wait_milliseconds))
        if promise.waits_for_replicas:
            waits.append(("WAIT", promise.waits_for_replicas, self._wait_milliseconds))
        if waits:
            # A script that refuses writes nothing, and the server waits for this connection's own
            # writes only. What the refusal rests on must be safe too.
            waits.insert(0, script_call(scripts.BARRIER, [self._barrier], []))
        answer, *waited = self._connection.ask_all(
            [script_call(script, keys, arguments), *waits], at_once=False
        )
        self._check_waits(promise, waited[1:])
        return list(answer)

    def close(self) -> None:
        """Closes all connections."""
        self._connection.close()

    def _check_waits(self, promise: Guarantee, waited: Sequence[Any]) -> None:
        answers = list(waited)
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
        facts = self._connection.with_client(lambda client: read_facts(client, self.shown))
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
