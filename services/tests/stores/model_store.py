"""Reference implementation of the store contract, with jobs in dictionaries."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from remy_services.stores.contract import (
    Commit,
    Conflict,
    Durability,
    Fenced,
    JobExists,
    JobMissing,
    Snapshot,
    StoredJob,
)


@dataclass
class _Job:
    record: bytes = b""
    token: int = 0
    request_key: str | None = None
    events: list[bytes] = field(default_factory=list)
    epochs: dict[int, bytes] = field(default_factory=dict)
    snapshots: dict[int, Snapshot] = field(default_factory=dict)

    def apply(self, commit: Commit) -> None:
        self.record = commit.record
        self.events += commit.events
        self.epochs |= commit.epochs
        if commit.snapshot is not None:
            revision = commit.snapshot_revision or len(self.events)
            digest = hashlib.sha256(commit.snapshot).digest()
            self.snapshots[revision] = Snapshot(
                revision, commit.schema_version, commit.snapshot, digest
            )


class ModelStore:
    """A CheckpointStore in memory. Not thread-safe."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        self._last_token = 0

    def durability(self) -> Durability:
        return Durability("model", "0", False, "nothing is kept")

    def check(self) -> None:
        pass

    def usage(self) -> dict[str, int]:
        return {}

    def create(self, job_id: str, commit: Commit, *, request_key: str | None = None) -> str:
        for existing_id, job in self._jobs.items():
            if request_key is not None and job.request_key == request_key:
                return existing_id
        if job_id in self._jobs:
            raise JobExists(job_id)
        self._jobs[job_id] = _Job(request_key=request_key)
        self._jobs[job_id].apply(commit)
        return job_id

    def acquire(self, job_id: str, holder: str) -> int:
        job = self._job(job_id)
        self._last_token += 1
        job.token = self._last_token
        return job.token

    def commit(self, job_id: str, token: int, revision: int, commit: Commit) -> int:
        job = self._require_token(job_id, token)
        if len(job.events) != revision:
            raise Conflict(job_id, len(job.events))
        job.apply(commit)
        return len(job.events)

    def job(self, job_id: str) -> StoredJob:
        job = self._job(job_id)
        return StoredJob(job_id, job.record, len(job.events), job.token)

    def jobs(self) -> list[StoredJob]:
        return [self.job(job_id) for job_id in self._jobs]

    def snapshots(self, job_id: str) -> list[Snapshot]:
        snapshots = self._job(job_id).snapshots
        return [snapshots[revision] for revision in sorted(snapshots, reverse=True)]

    def prune_snapshots(self, job_id: str, token: int, *, keep: int) -> None:
        job = self._require_token(job_id, token)
        job.snapshots = {each.revision: each for each in self.snapshots(job_id)[:keep]}

    def events(self, job_id: str, *, after: int = 0, limit: int = 1000) -> list[tuple[int, bytes]]:
        return list(enumerate(self._job(job_id).events, 1))[after : after + limit]

    def epochs(self, job_id: str) -> dict[int, bytes]:
        return dict(self._job(job_id).epochs)

    def epoch(self, job_id: str, number: int) -> bytes | None:
        return self._job(job_id).epochs.get(number)

    def delete(self, job_id: str, token: int) -> None:
        self._require_token(job_id, token)
        del self._jobs[job_id]

    def close(self) -> None:
        pass

    def _job(self, job_id: str) -> _Job:
        if job_id not in self._jobs:
            raise JobMissing(f"there is no job {job_id} in the store")
        return self._jobs[job_id]

    def _require_token(self, job_id: str, token: int) -> _Job:
        job = self._job(job_id)
        if job.token == 0 or job.token != token:
            raise Fenced(job_id)
        return job
