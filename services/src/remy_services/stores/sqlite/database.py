"""One SQLite file that any thread may use: connections, transactions and the file's layout."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from remy_services.files.errors import reason
from remy_services.stores.contract import StoreError, StoreUnavailable
from remy_services.stores.sqlite.errors import translated


@dataclass(frozen=True)
class Layout:
    """What a file holds, and how carefully."""

    #: For people: "a store of jobs".
    title: str
    #: SQLite's mark of who a file belongs to.
    application_id: int
    schema_version: int
    #: Statements that make the tables of an empty file.
    tables: str
    #: FULL: a transaction is on the disk when it ends; OFF: whenever the system likes.
    synchronous: str


class Database:
    """A file in WAL mode: readers do not wait for the writer, and one thread writes at a time."""

    def __init__(
        self, path: str | os.PathLike[str], layout: Layout, *, busy_seconds: float
    ) -> None:
        """Opens the file, or makes it (mode 0600) and its folder.

        `busy_seconds` is how long to wait for another process that writes. Raises StoreError.
        """
        self.path = Path(path).absolute()
        self._layout = layout
        self._busy_seconds = busy_seconds
        self._write_lock = threading.Lock()
        self._idle_lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as error:
            raise StoreUnavailable(f"{self.path} cannot be opened ({reason(error)})") from error
        with self._connection() as connection:
            self._prepare(connection)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees the file as it is at one moment. Raises StoreError."""
        with self._connection() as connection:
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is made if the block ends, and undone if it raises.

        Raises StoreError, and then nothing has changed.
        """
        with self._write_lock, self._connection() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    def close(self) -> None:
        """Closes the file; it cannot be used afterwards."""
        self._closed = True
        self._drop_idle()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        connection: sqlite3.Connection | None = None
        try:
            connection = self._take()
            yield connection
        except sqlite3.Error as error:
            # What was wrong with the file when a connection was opened stays with it.
            if connection is not None:
                connection.close()
            self._drop_idle()
            raise translated(self.path, error) from error
        except BaseException:
            if connection is not None:
                self._undo(connection)
            raise
        self._give_back(connection)

    def _take(self) -> sqlite3.Connection:
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
            connection.execute(f"PRAGMA synchronous = {self._layout.synchronous}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _undo(self, connection: sqlite3.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            connection.close()
        else:
            self._give_back(connection)

    def _give_back(self, connection: sqlite3.Connection) -> None:
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
        """Makes the tables of an empty file; raises StoreError for one of another layout."""
        if self._is_empty(connection):
            # WAL mode is kept in the file; it cannot be turned on inside of a transaction.
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                raise StoreError(
                    f"{self.path} is on a file system that SQLite's write-ahead log does not work "
                    "on; a local disk is needed"
                )
            connection.execute("BEGIN IMMEDIATE")
            if self._is_empty(connection):
                for statement in self._layout.tables.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {self._layout.application_id}")
                connection.execute(f"PRAGMA user_version = {self._layout.schema_version}")
            connection.execute("COMMIT")
        self._check_layout(connection)

    def _is_empty(self, connection: sqlite3.Connection) -> bool:
        (things,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        return things == 0 and self._application(connection) == 0

    def _application(self, connection: sqlite3.Connection) -> int:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        return int(application)

    def _check_layout(self, connection: sqlite3.Connection) -> None:
        layout = self._layout
        if self._application(connection) != layout.application_id:
            raise StoreError(
                f"{self.path} is not {layout.title} of remy-farm, but another SQLite database"
            )
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != layout.schema_version:
            raise StoreError(
                f"{self.path} has schema version {version}; this program reads version "
                f"{layout.schema_version} only"
            )
