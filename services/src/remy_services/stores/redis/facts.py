"""Asks a Redis server for what its durability depends on."""

from __future__ import annotations

from typing import Any

import redis

from remy_services.stores.contract import StoreError
from remy_services.stores.redis.durability import ServerFacts


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
