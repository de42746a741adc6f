"""Decides what a Redis server's acknowledgements are worth, and what to wait for. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from remy_services.stores.contract import Durability

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
