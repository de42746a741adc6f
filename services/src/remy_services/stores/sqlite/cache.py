"""A cache in an SQLite file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from remy_services.stores.cache.entry import (
    KEYS_AT_ONCE,
    fitting,
    portions,
    seal,
    size_of,
    unseal,
)
from remy_services.stores.sqlite.database import Database, Layout

_LAYOUT = Layout(
    title="a cache of evaluations",
    application_id=int.from_bytes(b"RMYE", "big"),
    schema_version=1,
    tables="""
        CREATE TABLE entries (
            key BLOB PRIMARY KEY,
            sealed BLOB NOT NULL,
            bytes INTEGER NOT NULL,
            used INTEGER NOT NULL
        );
        CREATE INDEX entries_by_use ON entries (used);
        CREATE TABLE totals (bytes INTEGER NOT NULL, clock INTEGER NOT NULL);
        INSERT INTO totals VALUES (0, 0);
    """,
    # A crash of the machine may cost the newest entries, and nothing else.
    synchronous="NORMAL",
)


class SqliteCache:
    """Keeps entries in a file of its own. See `EvaluationCache`; but it raises StoreError."""

    def __init__(
        self, path: str | os.PathLike[str], *, max_bytes: int, busy_seconds: float = 1.0
    ) -> None:
        """Holds at most `max_bytes`, an overhead for each entry included. Raises StoreError."""
        self._max_bytes = max_bytes
        self._database = Database(path, _LAYOUT, busy_seconds=busy_seconds)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found = {}
        with self._database.writing() as connection:
            clock = _tick(connection)
            for portion in portions(keys):
                for key, sealed in _select(connection, "key, sealed", portion):
                    value = unseal(key, sealed)
                    if value is None:
                        _remove(connection, [key])
                    else:
                        found[key] = value
            _touch(connection, list(found), clock)
        return found

    def put(self, entries: Iterable[tuple[bytes, bytes]]) -> None:
        with self._database.writing() as connection:
            clock = _tick(connection)
            for portion in portions(fitting(entries, self._max_bytes)):
                _remove(connection, [key for key, _ in portion])
                rows = [
                    (key, seal(key, value), size_of(key, value), clock) for key, value in portion
                ]
                connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", rows)
                _grow(connection, sum(size for _, _, size, _ in rows))
            self._make_room(connection)

    def close(self) -> None:
        self._database.close()

    def _make_room(self, connection: sqlite3.Connection) -> None:
        (total,) = connection.execute("SELECT bytes FROM totals").fetchone()
        while total > self._max_bytes:
            oldest = connection.execute(
                "SELECT key, bytes FROM entries ORDER BY used, rowid LIMIT ?", (KEYS_AT_ONCE,)
            ).fetchall()
            going = []
            for key, size in oldest:
                if total <= self._max_bytes:
                    break
                going.append(key)
                total -= size
            _remove(connection, going)


def _tick(connection: sqlite3.Connection) -> int:
    """Moves the clock that orders uses, and reads it."""
    connection.execute("UPDATE totals SET clock = clock + 1")
    (clock,) = connection.execute("SELECT clock FROM totals").fetchone()
    return int(clock)


def _touch(connection: sqlite3.Connection, keys: Sequence[bytes], clock: int) -> None:
    connection.executemany(
        "UPDATE entries SET used = ? WHERE key = ?", [(clock, key) for key in keys]
    )


def _grow(connection: sqlite3.Connection, size: int) -> None:
    connection.execute("UPDATE totals SET bytes = bytes + ?", (size,))


def _remove(connection: sqlite3.Connection, keys: Sequence[bytes]) -> None:
    """Removes those of at most KEYS_AT_ONCE keys that are there."""
    sizes = [size for (size,) in _select(connection, "bytes", keys)]
    connection.executemany("DELETE FROM entries WHERE key = ?", [(key,) for key in keys])
    _grow(connection, -sum(sizes))


def _select(connection: sqlite3.Connection, columns: str, keys: Sequence[bytes]) -> list[Any]:
    marks = ", ".join("?" * len(keys))
    return connection.execute(
        f"SELECT {columns} FROM entries WHERE key IN ({marks})", list(keys)
    ).fetchall()
