"""What every store promises, how it refuses, and snapshots that can be trusted.

A job in a store is a record, a history of events, the tables of its epochs, and its newest
snapshots. All of them change together, by commits, and only for the coordinator that holds the
job's newest fencing token. A commit that was acknowledged is durable, or the store's `durability`
says why not.

Stores are blocking and may be used from any thread. They know nothing of what they keep: records,
events, epochs and snapshots are bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class StoreError(Exception):
    """A store could not do what it was asked for. The message is one sentence."""


class StoreUnavailable(StoreError):
    """The store cannot be reached, is full, read-only or out of memory; later it may work.

    Whether the call took effect is not known: a commit may be repeated, and is then either made or
    refused as a `Conflict` whose `revision` tells that it had been.
    """


class Fenced(StoreError):
    """Another coordinator has taken the job: this one's token is not the newest."""


class Conflict(StoreError):
    """The job is at another revision than the commit expected."""

    def __init__(self, message: str, revision: int) -> None:
        super().__init__(message)
        #: The revision that the job is at.
        self.revision = revision


class JobMissing(StoreError):
    """There is no such job."""


class JobExists(StoreError):
    """There is such a job already."""


@dataclass(frozen=True)
class Durability:
    """Whether acknowledged commits survive the loss of the store's process or machine."""

    #: "sqlite" or "redis".
    kind: str
    #: Version of the database.
    version: str
    durable: bool
    #: One sentence: how a commit is made durable, or why it is not.
    description: str


@dataclass(frozen=True)
class Snapshot:
    """A designer's whole state, as it was committed with a revision."""

    revision: int
    #: Version of the message inside; a reader refuses any but its own.
    schema_version: int
    data: bytes
    #: SHA-256 of `data`, computed when it was committed. A reader compares.
    sha256: bytes


@dataclass(frozen=True)
class Commit:
    """What changes together, at one stroke."""

    #: The job's new record.
    record: bytes
    #: New entries of the history, numbered from the revision expected + 1 on. At least one.
    events: Sequence[bytes]
    #: The designer's state and its schema version; None: the last one stays the newest.
    snapshot: bytes | None = None
    schema_version: int = 0
    #: The revision that a snapshot from another store had there; None: this commit's own.
    snapshot_revision: int | None = None
    #: Epochs by number; one that exists is replaced.
    epochs: Mapping[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredJob:
    """A job's record and where it stands."""

    job_id: str
    record: bytes
    #: Number of the last event of its history.
    revision: int
    #: The newest fencing token; 0: nobody has taken it yet.
    token: int


class CheckpointStore(Protocol):
    """Keeps jobs. All methods may raise StoreUnavailable; those on a job, JobMissing."""

    def durability(self) -> Durability:
        """What an acknowledgement is worth here."""

    def check(self) -> None:
        """Returns if the store can be written to now; raises StoreUnavailable, saying why not."""

    def usage(self) -> Mapping[str, int]:
        """Bytes that it takes and has room for, by the kinds `memory`, `memory_limit`, `disk` and
        `disk_free`, as far as it knows."""

    def create(self, job_id: str, commit: Commit, *, request_key: str | None = None) -> str:
        """A new job at revision len(commit.events). Returns its id.

        If a job was created with this `request_key` before, nothing changes and its id is returned.
        Raises JobExists if the id is taken.
        """

    def acquire(self, job_id: str, holder: str) -> int:
        """Takes the job: a new fencing token, above all before, which are worth nothing now."""

    def commit(self, job_id: str, token: int, revision: int, commit: Commit) -> int:
        """Changes the job if `token` is its newest and it is at `revision`.

        Returns the new revision. One atomic step, durable when this returns. Raises Fenced or
        Conflict, and changes nothing.
        """

    def job(self, job_id: str) -> StoredJob:
        """The job's record."""

    def jobs(self) -> list[StoredJob]:
        """All jobs, in no order."""

    def snapshots(self, job_id: str) -> list[Snapshot]:
        """The snapshots that are kept, newest first."""

    def prune_snapshots(self, job_id: str, token: int, *, keep: int) -> None:
        """Removes all but the `keep` >= 1 newest. Raises Fenced."""

    def events(self, job_id: str, *, after: int = 0, limit: int = 1000) -> list[tuple[int, bytes]]:
        """At most `limit` entries of the history with revisions above `after`, in order."""

    def epochs(self, job_id: str) -> dict[int, bytes]:
        """All epochs by number."""

    def epoch(self, job_id: str, number: int) -> bytes | None:
        """One epoch; None if there is none of this number."""

    def delete(self, job_id: str, token: int) -> None:
        """Removes all of the job. Its request key may be used again. Raises Fenced."""

    def close(self) -> None:
        """Frees what the store holds; it is of no use afterwards."""


def check_commit(commit: Commit) -> None:
    """Raises ValueError for a commit that says nothing, or keeps a snapshot of no revision."""
    if not commit.events:
        raise ValueError("a commit has no event; at least 1 is needed")
    if commit.snapshot is None and commit.snapshot_revision is not None:
        raise ValueError("a commit has the revision of a snapshot, and no snapshot")


def check_page(after: int, limit: int) -> None:
    """Raises ValueError unless a part of a history can be meant."""
    if after < 0 or limit < 1:
        raise ValueError(
            f"after is {after} and limit is {limit}; at least 0 and at least 1 are needed"
        )


def check_keep(keep: int) -> None:
    """Raises ValueError if no snapshot would be left."""
    if keep < 1:
        raise ValueError(f"keep is {keep}; at least 1 is needed")


def missing(job_id: str) -> JobMissing:
    """For a job that is not there."""
    return JobMissing(f"there is no job {job_id} in the store")


def exists(job_id: str) -> JobExists:
    """For an id that is taken."""
    return JobExists(f"there is a job {job_id} in the store already; another id is needed")


def fenced(job_id: str, token: int, newest: int) -> Fenced:
    """For a token that is not the newest."""
    return Fenced(
        f"another coordinator has taken job {job_id}: its newest token is {newest}, not {token}"
    )


def conflict(job_id: str, expected: int, revision: int) -> Conflict:
    """For a commit that expected another revision."""
    return Conflict(f"job {job_id} is at revision {revision}, not {expected}", revision)


@dataclass(frozen=True)
class RefusedSnapshot:
    """A snapshot that is not what was committed."""

    revision: int
    #: One sentence for people.
    why: str


def newest_snapshot(
    store: CheckpointStore, job_id: str
) -> tuple[Snapshot | None, list[RefusedSnapshot]]:
    """The job's newest snapshot that is intact, and the newer ones that are not, newest first.

    None if no intact one is left. Raises StoreError.
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
    """Removes the oldest snapshots, so that `keep` >= 1 intact ones are left.

    Nothing is removed until the newest one, which was durable when its commit was acknowledged, has
    been read back and is what was committed. Returns the damaged ones among those that it read. To
    be called between two commits. Raises Fenced and other StoreErrors.
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
        "its content and its hash differ",
    )
