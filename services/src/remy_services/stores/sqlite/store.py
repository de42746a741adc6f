"""The store of one machine: an SQLite file."""

from __future__ import annotations

import hashlib
import os
import sqlite3

from remy_services.stores.arguments import check_commit, check_keep, check_page
from remy_services.stores.contract import Commit, Durability, Snapshot, StoredJob
from remy_services.stores.refusals import conflict, exists, fenced, missing
from remy_services.stores.sqlite.database import Database
from remy_services.stores.sqlite.job_tables import JOB_TABLES

_TABLES_OF_A_JOB = ("snapshots", "epochs", "events", "jobs")


class SqliteStore:
    """Keeps jobs in a file. See `CheckpointStore`."""

    def __init__(self, path: str | os.PathLike[str], *, busy_seconds: float = 5.0) -> None:
        """The store in this file, which is made if there is none.

        Another process that writes is waited for `busy_seconds`. Raises StoreError.
        """
        self._database = Database(path, JOB_TABLES, busy_seconds=busy_seconds)

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
            job = _held(connection, job_id, token)
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
            _held(connection, job_id, token)
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
            _held(connection, job_id, token)
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


def _held(connection: sqlite3.Connection, job_id: str, token: int) -> StoredJob:
    """The job, if it is there and `token`, which nobody has while it is 0, is its newest."""
    job = _require(connection, job_id)
    if token == 0 or job.token != token:
        raise fenced(job_id, token, job.token)
    return job


def _apply(connection: sqlite3.Connection, job_id: str, revision: int, commit: Commit) -> None:
    """Makes a commit to a job at this revision."""
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
