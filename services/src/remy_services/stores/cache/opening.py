"""Caches by their URLs."""

from __future__ import annotations

import os
from collections.abc import Mapping

from remy_services.stores.cache.guarded import GuardedCache
from remy_services.stores.cache.memory import MemoryCache
from remy_services.stores.contract import EvaluationCache, StoreError
from remy_services.stores.opening import sqlite_path
from remy_services.stores.redis.address import SCHEMES as REDIS_SCHEMES
from remy_services.stores.redis.address import parse_address
from remy_services.stores.redis.cache import RedisCache
from remy_services.stores.redis.password import find_password
from remy_services.stores.sqlite.cache import SqliteCache


def open_cache(
    url: str, *, max_bytes: int, environment: Mapping[str, str] = os.environ
) -> EvaluationCache:
    """The cache at this URL, which holds at most `max_bytes`; `memory:` is one in this process.

    The other URLs are those of `open_store`; a file is another one than the store's. Nothing is
    connected to yet. Raises StoreError for a URL that makes no sense.
    """
    scheme = url.partition(":")[0]
    if scheme == "memory":
        return MemoryCache(max_bytes=max_bytes)
    if scheme == "sqlite":
        path = sqlite_path(url)
        return GuardedCache(lambda: SqliteCache(path, max_bytes=max_bytes))
    if scheme in REDIS_SCHEMES:
        address = parse_address(url)
        password = find_password(environment)
        return GuardedCache(lambda: RedisCache(address, max_bytes=max_bytes, password=password))
    raise StoreError(
        "the URL of the cache is none of memory:, sqlite:///PATH, redis://HOST:PORT/DATABASE and "
        "the other forms of a Redis store"
    )
