"""The contract of job stores, its errors, and verified snapshots.

A stored job consists of a record, a history of events, the tables of its epochs, and its newest
snapshots. They change together in commits, which only the coordinator with the job's newest fencing
token can make. An acknowledged commit is durable, or `durability` says why not.

Stores block and are thread-safe. Records, events, epochs and snapshots are opaque bytes to them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class StoreError(Exception):
    """A store operation failed. The message is one sentence for users."""


class StoreUnavailable(StoreError):
    """The store is unreachable, full, read-only or out of memory; a retry may succeed.

    The call may have taken effect. A repeated commit either succeeds or raises `Conflict`, whose
    `revision` shows that the first attempt had succeeded.
    """


class Fenced(StoreError):
    """Another coordinator has acquired the job: the caller's token is not the newest."""


class Conflict(StoreError):
    """The job's revision differs from the commit's expected revision."""

    def __init__(self, message: str, revision: int) -> None:
        super().__init__(message)
        #: The job's revision.
        self.revision = revision


class JobMissing(StoreError):
    """The job does not exist."""


class JobExists(StoreError):
    """A job with this id already exists."""


@dataclass(frozen=True)
class Durability:
    """Whether acknowledged commits survive a crash of the store's process or machine."""

    #: "sqlite" or "redis".
    kind: str
    #: Version of the database.
    version: str
    durable: bool
    #: How commits are made durable, or why they are not, in one sentence.
    description: str


@dataclass(frozen=True)
class Snapshot:
    """A designer's complete state, committed at a revision."""

    revision: int
    #: Format version of `data`. Readers refuse other versions than their own.
    schema_version: int
    data: bytes
    #: SHA-256 of `data` at the commit. Readers compare it to detect damage.
    sha256: bytes


@dataclass(frozen=True)
class Commit:
    """An atomic change of a job."""

    #: The job's new record.
    record: bytes
    #: New history events, at least one. The first gets the expected revision + 1.
    events: Sequence[bytes]
    #: The designer's state, with its schema version; None keeps the previous snapshot.
    snapshot: bytes | None = None
    schema_version: int = 0
    #: Revision of an imported snapshot in its original store; None is this commit's revision.
    snapshot_revision: int | None = None
    #: Epochs by number; existing ones are replaced.
    epochs: Mapping[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredJob:
    """A job's record, revision and fencing token."""

    job_id: str
    record: bytes
    #: Revision of the last event.
    revision: int
    #: The newest fencing token; 0 if no coordinator has acquired the job yet.
    token: int


class CheckpointStore(Protocol):
    """Stores jobs. All methods may raise StoreUnavailable; methods on a job also JobMissing."""

    def durability(self) -> Durability:
        """Returns whether acknowledged commits are durable, and why."""

    def check(self) -> None:
        """Checks that the store accepts writes; otherwise raises StoreUnavailable."""

    def usage(self) -> Mapping[str, int]:
        """Returns sizes in bytes: any of `memory`, `memory_limit`, `disk` and `disk_free`."""

    def create(self, job_id: str, commit: Commit, *, request_key: str | None = None) -> str:
        """Creates a job at revision len(commit.events) and returns its id.

        If an earlier call with the same `request_key` created a job, nothing changes and that job's
        id is returned. Raises JobExists if the id exists.
        """

    def acquire(self, job_id: str, holder: str) -> int:
        """Acquires the job: returns a new fencing token, which invalidates all earlier ones."""

    def commit(self, job_id: str, token: int, revision: int, commit: Commit) -> int:
        """Changes the job if `token` is its newest token and `revision` its present revision.

        Returns the new revision. The change is atomic, and durable on return. If this raises Fenced
        or Conflict, nothing has changed.
        """

    def job(self, job_id: str) -> StoredJob:
        """Returns the job's record."""

    def jobs(self) -> list[StoredJob]:
        """Returns all jobs, in any order."""

    def snapshots(self, job_id: str) -> list[Snapshot]:
        """Returns the job's snapshots, newest first."""

    def prune_snapshots(self, job_id: str, token: int, *, keep: int) -> None:
        """Deletes all but the `keep` >= 1 newest snapshots. Raises Fenced."""

    def events(self, job_id: str, *, after: int = 0, limit: int = 1000) -> list[tuple[int, bytes]]:
        """Returns at most `limit` history events with revisions above `after`, in order."""

    def epochs(self, job_id: str) -> dict[int, bytes]:
        """Returns all epochs by number."""

    def epoch(self, job_id: str, number: int) -> bytes | None:
        """Returns one epoch, or None if it does not exist."""

    def delete(self, job_id: str, token: int) -> None:
        """Deletes the job with all its data, and frees its request key. Raises Fenced."""

    def close(self) -> None:
        """Releases all resources. The store cannot be used afterwards."""


def check_commit(commit: Commit) -> None:
    """Raises ValueError for a commit without events, or with a revision but no snapshot."""
    if not commit.events:
        raise ValueError("a commit has no events; at least 1 is required")
    if commit.snapshot is None and commit.snapshot_revision is not None:
        raise ValueError("a commit has a snapshot revision but no snapshot")


def check_page(after: int, limit: int) -> None:
    """Raises ValueError for an invalid range of history events."""
    if after < 0 or limit < 1:
        raise ValueError(
            f"after is {after} and limit is {limit}; they must be at least 0 and at least 1"
        )


def check_keep(keep: int) -> None:
    """Raises ValueError if `keep` is below 1."""
    if keep < 1:
        raise ValueError(f"keep is {keep}; it must be at least 1")


def missing(job_id: str) -> JobMissing:
    """Builds the error for a job that does not exist."""
    return JobMissing(f"there is no job {job_id} in the store")


def exists(job_id: str) -> JobExists:
    """Builds the error for an id that already exists."""
    return JobExists(f"the store already has a job {job_id}; use another id")


def fenced(job_id: str, token: int, newest: int) -> Fenced:
    """Builds the error for an outdated fencing token."""
    return Fenced(
        f"another coordinator has acquired job {job_id}: its newest token is {newest}, not {token}"
    )


def conflict(job_id: str, expected: int, revision: int) -> Conflict:
    """Builds the error for an unexpected revision."""
    return Conflict(f"job {job_id} is at revision {revision}, not {expected}", revision)


@dataclass(frozen=True)
class RefusedSnapshot:
    """A damaged snapshot."""

    revision: int
    #: The damage, in one sentence.
    why: str


def newest_snapshot(
    store: CheckpointStore, job_id: str
) -> tuple[Snapshot | None, list[RefusedSnapshot]]:
    """Returns the newest intact snapshot (or None) and the newer damaged ones, newest first.

    Raises StoreError.
    """
    refused: list[RefusedSnapshot] = []
    for snapshot in store.snapshots(job_id):
        if _is_intact(snapshot):
            return snapshot, refused
        refused.append(_refusal(snapshot))
    return None, refused


def retire_snapshots(
    store: CheckpointStore, job_id: str, token: int, *, keep: int = 2
) -> list[RefusedSnapshot]:
    """Deletes the oldest snapshots, so that `keep` >= 1 intact ones remain.

    Deletes nothing unless the newest snapshot is intact, which is checked by reading it back.
    Returns the damaged snapshots among those read. To be called between two commits. Raises Fenced
    and other StoreErrors.
    """
    refused = []
    intact = 0
    for position, snapshot in enumerate(store.snapshots(job_id)):
        if _is_intact(snapshot):
            intact += 1
        else:
            refused.append(_refusal(snapshot))
            if position == 0:
                break
        if intact == keep:
            store.prune_snapshots(job_id, token, keep=position + 1)
            break
    return refused


def _is_intact(snapshot: Snapshot) -> bool:
    return hashlib.sha256(snapshot.data).digest() == snapshot.sha256


def _refusal(snapshot: Snapshot) -> RefusedSnapshot:
    return RefusedSnapshot(
        snapshot.revision,
        f"the snapshot of revision {snapshot.revision} ({len(snapshot.data)} bytes) is damaged: "
        "its content does not match its hash",
    )
