"""What errors of Redis and of the way to it mean for whoever uses a store."""

from __future__ import annotations

import redis

from remy_services.files.errors import reason
from remy_services.stores.contract import StoreUnavailable

# What a reply has in it, before Redis 7 somewhere inside; the first that fits.
_REPLIES = {
    "OOM command not allowed": "is out of memory: it holds as much as its maxmemory allows",
    "MISCONF": "refuses writes because it cannot write to its disk",
    "READONLY": "is a read-only replica",
    "You can't write against a read only replica": "is a read-only replica",
    "NOREPLICAS": "refuses writes because it has fewer replicas than min-replicas-to-write",
    "Not enough good replicas": (
        "refuses writes because it has fewer replicas than min-replicas-to-write"
    ),
    "LOADING": "is reading its data after a start",
    "MASTERDOWN": "is a replica that has lost its master",
    "max number of clients reached": "has as many clients as its maxclients allows",
    "MOVED": "is a node of a Redis Cluster; a single server, or Sentinel, is needed",
}


def translated(shown: str, error: redis.RedisError) -> StoreUnavailable:
    """One sentence about the server at the address shown; nothing of the request is in it."""
    return StoreUnavailable(f"Redis at {shown} {_meaning(error)}")


def _meaning(error: redis.RedisError) -> str:
    text = f"{getattr(error, 'status_code', None) or ''} {error}"
    for reply, meaning in _REPLIES.items():
        if reply in text:
            return meaning
    if isinstance(error, redis.AuthenticationError):
        return "refuses this user and password"
    if isinstance(error, redis.exceptions.NoPermissionError):
        return f"does not let this user do what is needed ({error})"
    if isinstance(error, redis.sentinel.MasterNotFoundError):
        return "cannot be found: no Sentinel that answers knows a master of this name"
    if isinstance(error, redis.TimeoutError):
        return "does not answer in time"
    if isinstance(error, redis.ConnectionError):
        return f"cannot be reached ({_system_reason(error)})"
    return f"answers with an error ({error})"


def _system_reason(error: BaseException) -> str:
    """What the operating system said, of all that an error goes back to."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and not isinstance(cause, redis.RedisError):
            return reason(cause)
        cause = cause.__cause__ or cause.__context__
    return str(error).rstrip(".").lower()
