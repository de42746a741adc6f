"""Where jobs are kept: one contract, and its implementations on SQLite and Redis.

Around the stores: snapshots that can be trusted, jobs as files, and a mirror of those.
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
    """The store at this URL; one that is new is empty.

    `sqlite:///var/lib/farm.db` is /var/lib/farm.db, `sqlite:farm.db` is in the working directory.
    Forms and options of the others are those of `parse_address`; a password of Redis comes from
    the file that REMY_FARM_REDIS_PASSWORD_FILE in the environment names, or from
    REMY_FARM_REDIS_PASSWORD. Unless that is accepted, a server that would lose acknowledged commits
    is refused.

    Raises StoreUnavailable if the store cannot be reached now, and StoreError for a URL that makes
    no sense and for what will not get better by waiting.
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
    # Of what is no URL of ours, nothing is known that could not be a secret.
    given = f"scheme {scheme!r}" if rest.startswith("//") else "no scheme"
    raise StoreError(
        f"the URL of the store has {given}; sqlite:///PATH, redis://HOST:PORT/DATABASE, "
        "rediss://HOST:PORT/DATABASE, unix:///SOCKET or "
        "redis+sentinel://HOST:PORT,HOST:PORT/SERVICE is needed"
    )


def _sqlite_path(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc or parts.query or parts.fragment or not parts.path.strip("/"):
        raise StoreError(
            f"{url} does not name a file; sqlite:///var/lib/farm.db or sqlite:farm.db would"
        )
    return Path(unquote(parts.path))
