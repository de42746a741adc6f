"""What SQLite's errors mean for whoever uses a store."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from remy_services.stores.contract import StoreError, StoreUnavailable

# By primary result code: the low byte of the extended one.
_MEANINGS = {
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full",
    sqlite3.SQLITE_READONLY: "is read-only for this user",
    sqlite3.SQLITE_BUSY: "is locked by another process",
    sqlite3.SQLITE_LOCKED: "is locked by another process",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened, or its folder cannot be written to",
    sqlite3.SQLITE_PERM: "may not be opened by this user",
    sqlite3.SQLITE_IOERR: "cannot be read or written: its disk is full or fails",
    sqlite3.SQLITE_NOMEM: "cannot be used: this process is out of memory",
    sqlite3.SQLITE_PROTOCOL: "is being opened by another process",
}
_DAMAGES = {
    sqlite3.SQLITE_CORRUPT: "is damaged; restore it from a copy",
    sqlite3.SQLITE_NOTADB: "is not an SQLite database",
}


def translated(path: Path, error: sqlite3.Error) -> StoreError:
    """One sentence about the file, as StoreUnavailable where waiting may help."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if primary in _DAMAGES:
        return StoreError(f"{path} {_DAMAGES[primary]}")
    if primary in _MEANINGS:
        return StoreUnavailable(f"{path} {_MEANINGS[primary]}")
    return StoreUnavailable(f"{path} cannot be used ({error})")
