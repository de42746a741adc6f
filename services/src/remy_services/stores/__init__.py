"""Stores of jobs: one contract, implemented on SQLite and Redis.

Also: verified snapshots, job archives, link traces, and a mirror of archives.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from remy_services.stores.contract import CheckpointStore, StoreError
from remy_services.stores.redis.connection import SCHEMES, find_password, parse_address
from remy_services.stores.redis.store import RedisStore
from remy_services.stores.sqlite import SqliteStore

__all__ = ["CheckpointStore", "RedisStore", "SqliteStore", "StoreError", "open_store"]


def open_store(
    url: str, *, accept_data_loss: bool = False, environment: Mapping[str, str] = os.environ
) -> CheckpointStore:
    """Opens the store at a URL, and creates it if it does not exist.

    `sqlite:///var/lib/farm.db` names /var/lib/farm.db; `sqlite:farm.db` is relative to the working
    directory. For Redis URLs see `parse_address`. The Redis password is read from the file named by
    REMY_FARM_REDIS_PASSWORD_FILE, or from REMY_FARM_REDIS_PASSWORD. A Redis server that may lose
    acknowledged commits is refused unless `accept_data_loss` is set.

    Raises StoreUnavailable if the store cannot be reached now, and StoreError for an invalid URL
    and other permanent errors.
    """
    scheme, _, rest = url.partition(":")
    if scheme == "sqlite":
        return SqliteStore(_sqlite_path(url))
    if scheme in SCHEMES:
        return RedisStore(
            parse_address(url),
            password=find_password(environment),
            accept_data_loss=accept_data_loss,
        )
    # Shows only the scheme: any other part of an unknown URL may be a secret.
    given = f"scheme {scheme!r}" if rest.startswith("//") else "no scheme"
    raise StoreError(
        f"the store URL has {given}; use sqlite:///PATH, redis://HOST:PORT/DATABASE, "
        "rediss://HOST:PORT/DATABASE, unix:///SOCKET or "
        "redis+sentinel://HOST:PORT,HOST:PORT/SERVICE"
    )


def _sqlite_path(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc or parts.query or parts.fragment or not parts.path.strip("/"):
        raise StoreError(
            f"{url} has no valid path; use a form such as sqlite:///var/lib/farm.db or "
            "sqlite:farm.db"
        )
    return Path(unquote(parts.path))
