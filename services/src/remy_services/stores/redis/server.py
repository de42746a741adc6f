"""A Redis server that keeps jobs: what its acknowledgements are worth is known and seen to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import redis

from remy_services.stores.contract import Durability, StoreError, StoreUnavailable
from remy_services.stores.redis.connection import (
    Argument,
    Command,
    RedisAddress,
    new_client,
    script_call,
    translated,
)

_FOLDER = resources.files("remy_services.stores.redis") / "scripts"


def _script(*parts: str) -> str:
    """A script in Lua: the server carries it out as one step, and keeps it whole or not at all."""
    return "\n".join((_FOLDER / f"{part}.lua").read_text(encoding="utf-8") for part in parts)


OPEN = _script("open")
CHECK = _script("check")
BARRIER = _script("barrier")
CREATE = _script("apply", "create")
ACQUIRE = _script("acquire")
COMMIT = _script("apply", "holds", "commit")
PRUNE = _script("holds", "prune")
DELETE = _script("holds", "delete")


_FIRST_WITH_WAITAOF = (7, 2)


@dataclass(frozen=True)
class ServerFacts:
    """What a server says of itself; None: it does not say."""

    version: str
    #: Whether it keeps an append-only file.
    appends: bool
    #: "always", "everysec" or "no".
    appendfsync: str | None
    #: Whether it forces nothing to the disk while it rewrites that file.
    pauses_fsync: bool | None
    #: Bytes; 0: no bound.
    maxmemory: int
    maxmemory_policy: str

    @property
    def has_waitaof(self) -> bool:
        """Whether it can be asked if what was written is on its disk."""
        numbers = self.version.split(".")[:2]
        return all(each.isdecimal() for each in numbers) and (
            tuple(int(each) for each in numbers) >= _FIRST_WITH_WAITAOF
        )


@dataclass(frozen=True)
class Guarantee:
    """What a store does after each write, and what that is worth."""

    durability: Durability
    #: Whether to ask, after each write, if it is on the server's disk.
    waits_for_disk: bool = False
    #: How many replicas to wait for after each write.
    waits_for_replicas: int = 0


def guarantee(facts: ServerFacts, *, replicas: int, has_failover: bool) -> Guarantee:
    """The strongest that this server can give.

    `replicas` is how many must have every write; `has_failover` whether one may take the server's
    place.
    """
    forced = facts.appends and facts.appendfsync == "always" and facts.pauses_fsync is False
    waits = facts.appends and not forced and facts.has_waitaof and facts.appendfsync != "no"
    losses = _losses(facts, disk=forced or waits, replicas=replicas, has_failover=has_failover)
    how = (
        "every write is forced to the disk before it is acknowledged (appendfsync always)"
        if forced
        else "every write is acknowledged when WAITAOF says that it is on the disk"
    )
    if replicas:
        how += f", and once it is on {counted(replicas)}"
    return Guarantee(
        Durability("redis", facts.version, not losses, "; ".join(losses) or how), waits, replicas
    )


def counted(replicas: int) -> str:
    """So many replicas, in words."""
    return f"{replicas} replica" if replicas == 1 else f"{replicas} replicas"


def _losses(facts: ServerFacts, *, disk: bool, replicas: int, has_failover: bool) -> list[str]:
    """Each way in which acknowledged writes may be lost, with what would prevent it."""
    losses = []
    if not facts.appends:
        losses.append("what it holds is not on its disk (appendonly is no; yes is needed)")
    elif not disk:
        losses.append(_weak_fsync(facts))
    if facts.maxmemory > 0 and facts.maxmemory_policy.startswith("allkeys"):
        losses.append(
            "it removes jobs when it is full "
            f"(maxmemory-policy is {facts.maxmemory_policy}; noeviction is needed)"
        )
    if has_failover and replicas == 0:
        losses.append(
            "a fail-over loses what no replica has yet (the URL's option replicas=1 waits for one)"
        )
    return losses


def _weak_fsync(facts: ServerFacts) -> str:
    if facts.appendfsync == "no":
        return "it never forces what it holds to its disk (appendfsync is no; always is needed)"
    if facts.appendfsync == "always":
        return (
            "it forces nothing to its disk while it rewrites its file "
            "(no-appendfsync-on-rewrite is yes; no is needed)"
        )
    policy = "unknown" if facts.appendfsync is None else facts.appendfsync
    return (
        "the last writes before a crash may not be on its disk "
        f"(appendfsync is {policy}; always, or Redis 7.2 or newer, is needed)"
    )


def read_facts(client: redis.Redis, shown: str) -> ServerFacts:
    """What the server at the address shown says. Raises StoreError for a Redis Cluster.

    Lets redis.RedisError through.
    """
    said = client.info("server", "persistence", "memory")
    if said.get("redis_mode") == "cluster":
        raise StoreError(
            f"Redis at {shown} is a Redis Cluster; a single server, or Sentinel, is needed"
        )
    settings = _settings(client)
    return ServerFacts(
        version=str(said["redis_version"]),
        appends=bool(said["aof_enabled"]),
        appendfsync=settings.get("appendfsync"),
        pauses_fsync={"yes": True, "no": False}.get(settings.get("no-appendfsync-on-rewrite", "")),
        maxmemory=int(said["maxmemory"]),
        maxmemory_policy=str(said["maxmemory_policy"]),
    )


def _settings(client: redis.Redis) -> dict[str, str]:
    """Those about the append-only file; none where this user may not ask."""
    try:
        said: dict[Any, Any] = client.config_get("*append*")
    except redis.ResponseError:
        return {}
    return {_text(name): _text(value) for name, value in said.items()}


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


class RedisServer:
    """Carries out scripts, and waits until what they wrote is as safe as was promised.

    May be asked from any thread, connects when it is first used, and sends nothing twice.
    """

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

    def usage(self) -> dict[str, int]:
        """Its memory, with the bound if there is one, and its append-only file. Raises
        StoreUnavailable."""
        with translated(self.shown):
            said = self._client.info("memory", "persistence")
        fields = {"memory": "used_memory", "memory_limit": "maxmemory", "disk": "aof_current_size"}
        return {kind: int(said[field]) for kind, field in fields.items() if said.get(field)}

    def read(self, *command: Argument) -> Any:
        """The answer to one command. Raises StoreUnavailable."""
        with translated(self.shown):
            return self._client.execute_command(*command)  # type: ignore[no-untyped-call]

    def read_together(self, commands: Sequence[Command]) -> list[Any]:
        """The answers to some commands, all of one moment. Raises StoreUnavailable."""
        return self._ask_all(commands, at_once=True)

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
            waits.insert(0, script_call(BARRIER, [self._barrier], []))
        answer, *waited = self._ask_all(
            [script_call(script, keys, arguments), *waits], at_once=False
        )
        self._check_waits(promise, waited[1:])
        return list(answer)

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    def _ask_all(self, commands: Sequence[Command], *, at_once: bool) -> list[Any]:
        """The answers to some commands, sent together; the first that is an error is raised."""
        with translated(self.shown), self._client.pipeline(transaction=at_once) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)  # type: ignore[no-untyped-call]
            # The pipeline's own way of raising writes the whole request into the message.
            answers = pipeline.execute(raise_on_error=False)
            for answer in answers:
                if isinstance(answer, redis.RedisError):
                    raise answer
            return answers

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
        with translated(self.shown):
            facts = read_facts(self._client, self.shown)
        promise = guarantee(
            facts, replicas=self._address.replicas, has_failover=self._address.service is not None
        )
        if not promise.durability.durable and not self._accept_data_loss:
            raise StoreError(
                f"Redis at {self.shown} may lose jobs: {promise.durability.description}; change "
                "that, or accept the loss explicitly"
            )
        return promise
