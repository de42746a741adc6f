"""Keeps jobs in memory, until the stores are there."""

from __future__ import annotations

import hashlib
import threading

from remy_services.stores import (
    Commit,
    Conflict,
    Durability,
    Fenced,
    JobExists,
    JobMissing,
    Snapshot,
    StoredJob,
)


class _Kept:
    def __init__(self, commit: Commit) -> None:
        self.record = commit.record
        self.token = 0
        self.events: list[bytes] = []
        self.epochs: dict[int, bytes] = {}
        self.snapshots: list[Snapshot] = []
        self.apply(commit)

    def apply(self, commit: Commit) -> None:
        self.record = commit.record
        self.events.extend(commit.events)
        self.epochs.update(commit.epochs)
        if commit.snapshot is not None:
            digest = hashlib.sha256(commit.snapshot).digest()
            self.snapshots.insert(
                0, Snapshot(len(self.events), commit.schema_version, commit.snapshot, digest)
            )


class InterimStore:
    """A CheckpointStore that forgets everything when its process ends."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Kept] = {}
        self._requests: dict[str, str] = {}
        self._lock = threading.Lock()

    def durability(self) -> Durability:
        return Durability("memory", "0", False, "nothing is kept")

    def check(self) -> None:
        pass

    def create(self, job_id: str, commit: Commit, *, request_key: str | None = None) -> str:
        with self._lock:
            if request_key is not None and request_key in self._requests:
                return self._requests[request_key]
            if job_id in self._jobs:
                raise JobExists(f"job {job_id} exists")
            self._jobs[job_id] = _Kept(commit)
            if request_key is not None:
                self._requests[request_key] = job_id
            return job_id

    def acquire(self, job_id: str, holder: str) -> int:
        kept = self._kept(job_id)
        kept.token += 1
        return kept.token

    def commit(self, job_id: str, token: int, revision: int, commit: Commit) -> int:
        with self._lock:
            kept = self._kept(job_id)
            self._check_token(job_id, kept, token)
            if len(kept.events) != revision:
                raise Conflict(f"job {job_id} is at another revision", len(kept.events))
            kept.apply(commit)
            return len(kept.events)

    def job(self, job_id: str) -> StoredJob:
        kept = self._kept(job_id)
        return StoredJob(job_id, kept.record, len(kept.events), kept.token)

    def jobs(self) -> list[StoredJob]:
        return [self.job(job_id) for job_id in list(self._jobs)]

    def snapshots(self, job_id: str) -> list[Snapshot]:
        return list(self._kept(job_id).snapshots)

    def prune_snapshots(self, job_id: str, token: int, *, keep: int) -> None:
        kept = self._kept(job_id)
        self._check_token(job_id, kept, token)
        del kept.snapshots[keep:]

    def events(self, job_id: str, *, after: int = 0, limit: int = 1000) -> list[tuple[int, bytes]]:
        found = self._kept(job_id).events[after : after + limit]
        return list(enumerate(found, start=after + 1))

    def epochs(self, job_id: str) -> dict[int, bytes]:
        return dict(self._kept(job_id).epochs)

    def epoch(self, job_id: str, number: int) -> bytes | None:
        return self._kept(job_id).epochs.get(number)

    def delete(self, job_id: str, token: int) -> None:
        kept = self._kept(job_id)
        self._check_token(job_id, kept, token)
        del self._jobs[job_id]
        self._requests = {key: value for key, value in self._requests.items() if value != job_id}

    def close(self) -> None:
        pass

    def _kept(self, job_id: str) -> _Kept:
        if job_id not in self._jobs:
            raise JobMissing(f"there is no job {job_id}")
        return self._jobs[job_id]

    def _check_token(self, job_id: str, kept: _Kept, token: int) -> None:
        if kept.token != token:
            raise Fenced(f"job {job_id} was taken")
