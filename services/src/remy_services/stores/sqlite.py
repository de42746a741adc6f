"""SqliteStore: job store in an SQLite file, for a single machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import tenacity

from remy_farm.files import reason
from remy_services.stores.contract import (
    Commit,
    Durability,
    Snapshot,
    StoredJob,
    StoreError,
    StoreUnavailable,
    check_commit,
    check_keep,
    check_page,
    conflict,
    exists,
    fenced,
    missing,
)

# Temporary errors by primary result code, which is the low byte of the extended code.
_TEMPORARY_ERRORS = {
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full",
    sqlite3.SQLITE_READONLY: "is read-only for this user",
    sqlite3.SQLITE_BUSY: "is locked by another process",
    sqlite3.SQLITE_LOCKED: "is locked by another process",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened, or its folder cannot be written to",
    sqlite3.SQLITE_PERM: "may not be opened by this user",
    sqlite3.SQLITE_IOERR: "cannot be read or written: disk full or I/O error",
    sqlite3.SQLITE_NOMEM: "cannot be used: this process is out of memory",
    sqlite3.SQLITE_PROTOCOL: "is being opened by another process",
}
_PERMANENT_ERRORS = {
    sqlite3.SQLITE_CORRUPT: "is corrupt; restore it from a backup",
    sqlite3.SQLITE_NOTADB: "is not an SQLite database",
}


def _primary_code(error: BaseException) -> int | None:
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _is_busy(error: BaseException) -> bool:
    return _primary_code(error) == sqlite3.SQLITE_BUSY


def translated(path: Path, error: sqlite3.Error) -> StoreError:
    """Translates an SQLite error; temporary errors become StoreUnavailable."""
    primary = _primary_code(error)
    if primary in _PERMANENT_ERRORS:
        return StoreError(f"{path} {_PERMANENT_ERRORS[primary]}")
    if primary in _TEMPORARY_ERRORS:
        return StoreUnavailable(f"{path} {_TEMPORARY_ERRORS[primary]}")
    return StoreUnavailable(f"{path} cannot be used ({error})")


def _no_permission(path: Path) -> StoreError:
    return StoreError(
        f"{path} cannot be opened: this user may not create files in the folder {path.parent}; "
        "grant that permission or choose another path"
    )


# SQLite application id of a remy-farm store.
_APPLICATION = int.from_bytes(b"RMYJ", "big")
_SCHEMA_VERSION = 2
_TABLES = """
    CREATE TABLE jobs (
        job_id TEXT PRIMARY KEY,
        record BLOB NOT NULL,
        revision INTEGER NOT NULL,
        token INTEGER NOT NULL,
        holder TEXT NOT NULL,
        request_key TEXT UNIQUE
    );
    CREATE TABLE events (
        job_id TEXT NOT NULL,
        revision INTEGER NOT NULL,
        event BLOB NOT NULL,
        PRIMARY KEY (job_id, revision)
    );
    CREATE TABLE epochs (
        job_id TEXT NOT NULL,
        number INTEGER NOT NULL,
        epoch BLOB NOT NULL,
        PRIMARY KEY (job_id, number)
    );
    CREATE TABLE snapshots (
        job_id TEXT NOT NULL,
        revision INTEGER NOT NULL,
        schema_version INTEGER NOT NULL,
        data BLOB NOT NULL,
        sha256 BLOB NOT NULL,
        PRIMARY KEY (job_id, revision)
    );
    -- Tokens are never reused, not even for a job that is deleted and created again.
    CREATE TABLE last_token (token INTEGER NOT NULL);
    INSERT INTO last_token VALUES (0);
    CREATE TABLE checks (made INTEGER NOT NULL);
    INSERT INTO checks VALUES (0);
"""


class Database:
    """An SQLite file in WAL mode: readers never wait, and one thread writes at a time."""

    def __init__(self, path: str | os.PathLike[str], *, busy_seconds: float) -> None:
        """Opens the file, or creates it with mode 0600 in an existing folder.

        `busy_seconds` limits the wait for another process's write lock. Raises StoreError, or
        StoreUnavailable for temporary errors.
        """
        self.path = Path(path).absolute()
        self._busy_seconds = busy_seconds
        self._write_lock = threading.Lock()
        self._idle_lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        try:
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except (FileNotFoundError, NotADirectoryError) as error:
            raise StoreError(
                f"{self.path} cannot be created: the folder {self.path.parent} does not exist; "
                "create it, or choose another path"
            ) from error
        except PermissionError as error:
            raise _no_permission(self.path) from error
        except OSError as error:
            raise StoreUnavailable(f"{self.path} cannot be opened ({reason(error)})") from error
        # SQLite creates its write-ahead log in the same folder.
        if not os.access(self.path.parent, os.W_OK | os.X_OK):
            raise _no_permission(self.path)
        with self._connection() as connection:
            self._prepare(connection)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Opens a read transaction, which sees a consistent snapshot. Raises StoreError."""
        with self._connection() as connection:
            connection.execute("BEGIN")
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Opens a write transaction: commits at the end of the block, rolls back if it raises.

        Raises StoreError, and then nothing has changed.
        """
        with self._write_lock, self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection

    def close(self) -> None:
        """Closes the file. It cannot be used afterwards."""
        self._closed = True
        self._drop_idle()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Borrows a connection; commits its transaction, or rolls back if the block raises."""
        connection: sqlite3.Connection | None = None
        try:
            connection = self._acquire_connection()
            with connection:
                yield connection
        except sqlite3.Error as error:
            # A connection keeps a file error that it saw when it was opened, so all are discarded.
            if connection is not None:
                connection.close()
            connection = None
            self._drop_idle()
            raise translated(self.path, error) from error
        finally:
            if connection is not None:
                self._release_connection(connection)

    def _acquire_connection(self) -> sqlite3.Connection:
        if self._closed:
            raise StoreError(f"{self.path} was closed")
        with self._idle_lock:
            if self._idle:
                return self._idle.pop()
        connection = sqlite3.connect(
            f"{self.path.as_uri()}?mode=rw",
            uri=True,
            timeout=self._busy_seconds,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            # FULL forces each commit to the disk.
            connection.execute("PRAGMA synchronous = FULL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _release_connection(self, connection: sqlite3.Connection) -> None:
        with self._idle_lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def _drop_idle(self) -> None:
        with self._idle_lock:
            while self._idle:
                self._idle.pop().close()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Creates the tables in an empty file; raises StoreError for other contents."""
        if self._is_empty(connection):
            if self._enable_wal(connection) != "wal":
                raise StoreError(
                    f"{self.path} is on a file system that does not support SQLite's write-ahead "
                    "log; use a local disk"
                )
            connection.execute("BEGIN IMMEDIATE")
            if self._is_empty(connection):
                for statement in _TABLES.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
            connection.execute("COMMIT")
        self._check_schema(connection)

    def _enable_wal(self, connection: sqlite3.Connection) -> str:
        """Switches the file to WAL mode, and returns its actual mode."""
        # The switch is not possible in a transaction, and SQLite's busy timeout does not apply if
        # another connection switches at the same time, hence the retries.
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_is_busy),
            wait=tenacity.wait_random(0.001, 0.02),
            stop=tenacity.stop_after_delay(self._busy_seconds),
            reraise=True,
        )
        (mode,) = retrying(connection.execute, "PRAGMA journal_mode = WAL").fetchone()
        return str(mode)

    def _is_empty(self, connection: sqlite3.Connection) -> bool:
        (objects,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        return objects == 0 and self._application(connection) == 0

    def _application(self, connection: sqlite3.Connection) -> int:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        return int(application)

    def _check_schema(self, connection: sqlite3.Connection) -> None:
        if self._application(connection) != _APPLICATION:
            raise StoreError(f"{self.path} is an SQLite database, but not a remy-farm job store")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != _SCHEMA_VERSION:
            raise StoreError(
                f"{self.path} has schema version {version}, but this program reads version "
                f"{_SCHEMA_VERSION} only; finish or fetch its jobs with the version of remy-farm "
                "that wrote it, and use a new store"
            )


_TABLES_OF_A_JOB = ("snapshots", "epochs", "events", "jobs")


class SqliteStore:
    """Stores jobs in an SQLite file. See `CheckpointStore`."""

    def __init__(self, path: str | os.PathLike[str], *, busy_seconds: float = 5.0) -> None:
        """Opens the store in this file, and creates it if it does not exist.

        `busy_seconds` limits the wait for another process's write lock. Raises StoreError.
        """
        self._database = Database(path, busy_seconds=busy_seconds)

    def durability(self) -> Durability:
        return Durability(
            kind="sqlite",
            version=sqlite3.sqlite_version,
            durable=True,
            description="every commit is forced to the disk (WAL, synchronous=FULL)",
        )

    def check(self) -> None:
        with self._database.writing() as connection:
            connection.execute("UPDATE checks SET made = made + 1")

    def usage(self) -> dict[str, int]:
        path = self._database.path
        # Includes the write-ahead log and its index.
        files = sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*"))
        return {"disk": files, "disk_free": shutil.disk_usage(path.parent).free}

    def create(self, job_id: str, commit: Commit, *, request_key: str | None = None) -> str:
        check_commit(commit)
        with self._database.writing() as connection:
            if request_key is not None:
                made = connection.execute(
                    "SELECT job_id FROM jobs WHERE request_key = ?", (request_key,)
                ).fetchone()
                if made is not None:
                    return str(made[0])
            if _find(connection, job_id) is not None:
                raise exists(job_id)
            connection.execute(
                "INSERT INTO jobs VALUES (?, ?, 0, 0, '', ?)", (job_id, b"", request_key)
            )
            _apply(connection, job_id, 0, commit)
        return job_id

    def acquire(self, job_id: str, holder: str) -> int:
        with self._database.writing() as connection:
            _require(connection, job_id)
            connection.execute("UPDATE last_token SET token = token + 1")
            (token,) = connection.execute("SELECT token FROM last_token").fetchone()
            connection.execute(
                "UPDATE jobs SET token = ?, holder = ? WHERE job_id = ?", (token, holder, job_id)
            )
        return int(token)

    def commit(self, job_id: str, token: int, revision: int, commit: Commit) -> int:
        check_commit(commit)
        with self._database.writing() as connection:
            job = _require_token(connection, job_id, token)
            if job.revision != revision:
                raise conflict(job_id, revision, job.revision)
            _apply(connection, job_id, revision, commit)
        return revision + len(commit.events)

    def job(self, job_id: str) -> StoredJob:
        with self._database.reading() as connection:
            return _require(connection, job_id)

    def jobs(self) -> list[StoredJob]:
        with self._database.reading() as connection:
            rows = connection.execute("SELECT job_id, record, revision, token FROM jobs")
            return [StoredJob(*row) for row in rows]

    def snapshots(self, job_id: str) -> list[Snapshot]:
        with self._database.reading() as connection:
            _require(connection, job_id)
            rows = connection.execute(
                "SELECT revision, schema_version, data, sha256 FROM snapshots "
                "WHERE job_id = ? ORDER BY revision DESC",
                (job_id,),
            )
            return [Snapshot(*row) for row in rows]

    def prune_snapshots(self, job_id: str, token: int, *, keep: int) -> None:
        check_keep(keep)
        with self._database.writing() as connection:
            _require_token(connection, job_id, token)
            connection.execute(
                "DELETE FROM snapshots WHERE job_id = ?1 AND revision NOT IN (SELECT revision "
                "FROM snapshots WHERE job_id = ?1 ORDER BY revision DESC LIMIT ?2)",
                (job_id, keep),
            )

    def events(self, job_id: str, *, after: int = 0, limit: int = 1000) -> list[tuple[int, bytes]]:
        check_page(after, limit)
        with self._database.reading() as connection:
            _require(connection, job_id)
            return connection.execute(
                "SELECT revision, event FROM events WHERE job_id = ? AND revision > ? "
                "ORDER BY revision LIMIT ?",
                (job_id, after, limit),
            ).fetchall()

    def epochs(self, job_id: str) -> dict[int, bytes]:
        with self._database.reading() as connection:
            _require(connection, job_id)
            return dict(
                connection.execute(
                    "SELECT number, epoch FROM epochs WHERE job_id = ? ORDER BY number", (job_id,)
                )
            )

    def epoch(self, job_id: str, number: int) -> bytes | None:
        with self._database.reading() as connection:
            _require(connection, job_id)
            row = connection.execute(
                "SELECT epoch FROM epochs WHERE job_id = ? AND number = ?", (job_id, number)
            ).fetchone()
        return None if row is None else bytes(row[0])

    def delete(self, job_id: str, token: int) -> None:
        with self._database.writing() as connection:
            _require_token(connection, job_id, token)
            for table in _TABLES_OF_A_JOB:
                connection.execute(f"DELETE FROM {table} WHERE job_id = ?", (job_id,))

    def close(self) -> None:
        self._database.close()


def _find(connection: sqlite3.Connection, job_id: str) -> StoredJob | None:
    row = connection.execute(
        "SELECT job_id, record, revision, token FROM jobs WHERE job_id = ?", (job_id,)
    ).fetchone()
    return None if row is None else StoredJob(*row)


def _require(connection: sqlite3.Connection, job_id: str) -> StoredJob:
    job = _find(connection, job_id)
    if job is None:
        raise missing(job_id)
    return job


def _require_token(connection: sqlite3.Connection, job_id: str, token: int) -> StoredJob:
    """Returns the job. Raises JobMissing, or Fenced unless `token` is its newest (and not 0)."""
    job = _require(connection, job_id)
    if token == 0 or job.token != token:
        raise fenced(job_id, token, job.token)
    return job


def _apply(connection: sqlite3.Connection, job_id: str, revision: int, commit: Commit) -> None:
    """Applies a commit to a job at this revision."""
    after = revision + len(commit.events)
    connection.execute(
        "UPDATE jobs SET record = ?, revision = ? WHERE job_id = ?", (commit.record, after, job_id)
    )
    connection.executemany(
        "INSERT INTO events VALUES (?, ?, ?)",
        [(job_id, number, event) for number, event in enumerate(commit.events, revision + 1)],
    )
    connection.executemany(
        "INSERT OR REPLACE INTO epochs VALUES (?, ?, ?)",
        [(job_id, number, epoch) for number, epoch in commit.epochs.items()],
    )
    if commit.snapshot is not None:
        at = after if commit.snapshot_revision is None else commit.snapshot_revision
        connection.execute(
            "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)",
            (
                job_id,
                at,
                commit.schema_version,
                commit.snapshot,
                hashlib.sha256(commit.snapshot).digest(),
            ),
        )
