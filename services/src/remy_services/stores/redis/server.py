"""Redis server access: runs scripts, and enforces and reports the durability of writes."""

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
    """Concatenates Lua files to one script, which the server runs and persists atomically."""
    return "\n".join((_FOLDER / f"{part}.lua").read_text(encoding="utf-8") for part in parts)


OPEN = _script("open")
CHECK = _script("check")
BARRIER = _script("barrier")
CREATE = _script("apply", "create")
ACQUIRE = _script("acquire")
COMMIT = _script("apply", "fencing", "commit")
PRUNE = _script("fencing", "prune")
DELETE = _script("fencing", "delete")


_FIRST_WITH_WAITAOF = (7, 2)


@dataclass(frozen=True)
class ServerFacts:
    """Persistence settings that a server reports; None where the user may not read them."""

    version: str
    #: Whether the append-only file is enabled.
    appends: bool
    #: "always", "everysec" or "no".
    appendfsync: str | None
    #: Whether fsync is suspended while the append-only file is rewritten.
    pauses_fsync: bool | None
    #: Memory limit in bytes; 0 means no limit.
    maxmemory: int
    maxmemory_policy: str

    @property
    def has_waitaof(self) -> bool:
        """Whether the server supports WAITAOF, which waits until writes are on its disk."""
        numbers = self.version.split(".")[:2]
        return all(each.isdecimal() for each in numbers) and (
            tuple(int(each) for each in numbers) >= _FIRST_WITH_WAITAOF
        )


@dataclass(frozen=True)
class Guarantee:
    """The waits after each write, and the durability that they give."""

    durability: Durability
    #: Whether to wait after each write until it is on the server's disk.
    waits_for_disk: bool = False
    #: Number of replicas to wait for after each write.
    waits_for_replicas: int = 0


def guarantee(facts: ServerFacts, *, replicas: int, has_failover: bool) -> Guarantee:
    """Returns the strongest guarantee that a server supports.

    `replicas` is the number of replicas that must have every write; `has_failover` says whether a
    replica may replace the server.
    """
    forced = facts.appends and facts.appendfsync == "always" and facts.pauses_fsync is False
    waits = facts.appends and not forced and facts.has_waitaof and facts.appendfsync != "no"
    losses = _losses(facts, disk=forced or waits, replicas=replicas, has_failover=has_failover)
    how = (
        "every write is on the disk before it is acknowledged (appendfsync always)"
        if forced
        else "every write is acknowledged once WAITAOF confirms that it is on the disk"
    )
    if replicas:
        how += f", and once it is on {counted(replicas)}"
    return Guarantee(
        Durability("redis", facts.version, not losses, "; ".join(losses) or how), waits, replicas
    )


def counted(replicas: int) -> str:
    """Formats a number of replicas."""
    return f"{replicas} replica" if replicas == 1 else f"{replicas} replicas"


def _losses(facts: ServerFacts, *, disk: bool, replicas: int, has_failover: bool) -> list[str]:
    """Lists how acknowledged writes may be lost, each with a remedy."""
    losses = []
    if not facts.appends:
        losses.append("its data is not on its disk (appendonly is no; set it to yes)")
    elif not disk:
        losses.append(_weak_fsync(facts))
    if facts.maxmemory > 0 and facts.maxmemory_policy.startswith("allkeys"):
        losses.append(
            f"it evicts jobs when it is full (maxmemory-policy is {facts.maxmemory_policy}; set it "
            "to noeviction)"
        )
    if has_failover and replicas == 0:
        losses.append(
            "a failover loses unreplicated writes (set replicas=1 in the URL to wait for a replica)"
        )
    return losses


def _weak_fsync(facts: ServerFacts) -> str:
    if facts.appendfsync == "no":
        return "it never forces writes to its disk (appendfsync is no; set it to always)"
    if facts.appendfsync == "always":
        return (
            "it does not force writes to its disk during rewrites of its file "
            "(no-appendfsync-on-rewrite is yes; set it to no)"
        )
    policy = "unknown" if facts.appendfsync is None else facts.appendfsync
    return (
        f"the last writes before a crash may not be on its disk (appendfsync is {policy}; set it "
        "to always, or use Redis 7.2 or newer)"
    )


def read_facts(client: redis.Redis, shown: str) -> ServerFacts:
    """Reads a server's settings. Raises StoreError for a Redis Cluster, and redis.RedisError.

    `shown` is the address for messages.
    """
    info = client.info("server", "persistence", "memory")
    if info.get("redis_mode") == "cluster":
        raise StoreError(f"Redis at {shown} is a Redis Cluster; use a single server or Sentinel")
    settings = _settings(client)
    return ServerFacts(
        version=str(info["redis_version"]),
        appends=bool(info["aof_enabled"]),
        appendfsync=settings.get("appendfsync"),
        pauses_fsync={"yes": True, "no": False}.get(settings.get("no-appendfsync-on-rewrite", "")),
        maxmemory=int(info["maxmemory"]),
        maxmemory_policy=str(info["maxmemory_policy"]),
    )


def _settings(client: redis.Redis) -> dict[str, str]:
    """Reads the settings of the append-only file; empty if the user lacks permission."""
    try:
        info: dict[Any, Any] = client.config_get("*append*")
    except redis.ResponseError:
        return {}
    return {_text(name): _text(value) for name, value in info.items()}


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


class RedisServer:
    """Runs scripts, and waits until their writes have the promised durability.

    Thread-safe; connects on first use; never retries a request.
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
        """Connects and determines the server's guarantee.

        `barrier` is a key for the writes that WAITAOF and WAIT need. Raises StoreError if the
        server may lose acknowledged writes and `accept_data_loss` is not set.
        """
        self._address = address
        self._accept_data_loss = accept_data_loss
        self._barrier = barrier
        self._wait_milliseconds = round(1000 * answer_seconds)
        self._client = new_client(
            address,
            password,
            connect_seconds=connect_seconds,
            # Longer than the server's own timeout, so that its reply arrives; the server checks the
            # time only occasionally.
            answer_seconds=2 * answer_seconds + 1,
        )
        try:
            self._guarantee = self._read_guarantee()
        except BaseException:
            self._client.close()
            raise

    @property
    def shown(self) -> str:
        """The server's address, for messages."""
        return self._address.shown

    @property
    def durability(self) -> Durability:
        """The durability of acknowledged writes."""
        return self._guarantee.durability

    def refresh_guarantee(self) -> None:
        """Reads the settings again, since another server may answer after a failover. Raises
        StoreError.
        """
        self._guarantee = self._read_guarantee()

    def usage(self) -> dict[str, int]:
        """Returns memory use, memory limit if set, and size of the append-only file.

        Raises StoreUnavailable.
        """
        with translated(self.shown):
            info = self._client.info("memory", "persistence")
        fields = {"memory": "used_memory", "memory_limit": "maxmemory", "disk": "aof_current_size"}
        return {kind: int(info[field]) for kind, field in fields.items() if info.get(field)}

    def read(self, *command: Argument) -> Any:
        """Runs one read command. Raises StoreUnavailable."""
        with translated(self.shown):
            return self._client.execute_command(*command)  # type: ignore[no-untyped-call]

    def read_transaction(self, commands: Sequence[Command]) -> list[Any]:
        """Runs read commands in one transaction. Raises StoreUnavailable."""
        return self._execute(commands, in_transaction=True)

    def write(self, script: str, keys: Sequence[str], arguments: Sequence[Argument]) -> list[bytes]:
        """Runs a script and returns its reply once its writes are durable.

        Raises StoreUnavailable.
        """
        required = self._guarantee
        waits: list[Command] = []
        if required.waits_for_disk:
            waits.append(("WAITAOF", 1, 0, self._wait_milliseconds))
        if required.waits_for_replicas:
            waits.append(("WAIT", required.waits_for_replicas, self._wait_milliseconds))
        if waits:
            # WAIT covers only writes of this connection, and a script that refuses writes nothing.
            # The barrier write makes the state that the refusal is based on durable too.
            waits.insert(0, script_call(BARRIER, [self._barrier], []))
        answer, *waited = self._execute(
            [script_call(script, keys, arguments), *waits], in_transaction=False
        )
        self._check_waits(required, waited[1:])
        return list(answer)

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    def _execute(self, commands: Sequence[Command], *, in_transaction: bool) -> list[Any]:
        """Sends commands in one pipeline and returns the replies; raises the first error."""
        with translated(self.shown), self._client.pipeline(transaction=in_transaction) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)  # type: ignore[no-untyped-call]
            # With raise_on_error the message would contain the whole request.
            answers = pipeline.execute(raise_on_error=False)
            for answer in answers:
                if isinstance(answer, redis.RedisError):
                    raise answer
            return answers

    def _check_waits(self, required: Guarantee, waited: Sequence[Any]) -> None:
        answers = list(waited)
        seconds = self._wait_milliseconds / 1000
        if required.waits_for_disk and answers.pop(0)[0] < 1:
            raise StoreUnavailable(
                f"Redis at {self.shown} did not force a write to its disk within {seconds:g} s"
            )
        if required.waits_for_replicas and answers.pop(0) < required.waits_for_replicas:
            raise StoreUnavailable(
                f"Redis at {self.shown} did not have a write on "
                f"{counted(required.waits_for_replicas)} within {seconds:g} s"
            )

    def _read_guarantee(self) -> Guarantee:
        with translated(self.shown):
            facts = read_facts(self._client, self.shown)
        required = guarantee(
            facts, replicas=self._address.replicas, has_failover=self._address.service is not None
        )
        if not required.durability.durable and not self._accept_data_loss:
            raise StoreError(
                f"Redis at {self.shown} may lose jobs: {required.durability.description}; change "
                "that, or accept the loss explicitly"
            )
        return required
