"""A store that is watched: how long it takes, what it refuses, how old checkpoints are."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from remy_services.stores import (
    CheckpointStore,
    Commit,
    Conflict,
    Durability,
    Fenced,
    Snapshot,
    StoredJob,
    StoreError,
    StoreUnavailable,
)
from remy_services.telemetry.activity import JobActivity
from remy_services.telemetry.catalogue import store as catalogue
from remy_services.telemetry.instruments import Instruments
from remy_services.telemetry.step_times import Phase, StepTimes

_OPERATIONS = (
    *("check", "create", "acquire", "commit", "job", "jobs", "snapshots"),
    *("prune_snapshots", "events", "epochs", "epoch", "delete"),
)
_REASONS = {Fenced: "fenced", Conflict: "conflict", StoreUnavailable: "unavailable"}


class MeasuredStore:
    """Passes everything on to a CheckpointStore, and answers exactly as it does."""

    def __init__(
        self,
        store: CheckpointStore,
        instruments: Instruments,
        activity: JobActivity,
        step_times: StepTimes,
    ) -> None:
        self._store = store
        self._instruments = instruments
        self._activity = activity
        self._step_times = step_times
        for operation in _OPERATIONS:
            instruments.prepare(catalogue.STORE_ERRORS, operation)
            instruments.prepare(catalogue.STORE_OPERATION, operation)
        for reason in (*_REASONS.values(), "other"):
            instruments.prepare(catalogue.CHECKPOINT_FAILURES, reason)
        durability = self.durability()
        instruments.set(catalogue.STORE_INFO, 1, durability.kind, durability.version)
        instruments.set(catalogue.STORE_AVAILABLE, 1)

    def durability(self) -> Durability:
        durability = self._store.durability()
        self._instruments.set(catalogue.STORE_DURABLE, durability.durable)
        return durability

    def check(self) -> None:
        with self._measured("check"):
            self._store.check()

    def create(self, job_id: str, commit: Commit, *, request_key: str | None = None) -> str:
        with self._measured("create"):
            return self._store.create(job_id, commit, request_key=request_key)

    def acquire(self, job_id: str, holder: str) -> int:
        with self._measured("acquire"):
            token = self._store.acquire(job_id, holder)
        self._activity.taken(job_id)
        return token

    def commit(self, job_id: str, token: int, revision: int, commit: Commit) -> int:
        if commit.snapshot is None:
            with self._measured("commit"):
                return self._store.commit(job_id, token, revision, commit)
        began = time.perf_counter()
        try:
            with self._measured("commit"):
                reached = self._store.commit(job_id, token, revision, commit)
        except StoreError as error:
            reason = _REASONS.get(type(error), "other")
            self._instruments.count(catalogue.CHECKPOINT_FAILURES, reason)
            raise
        self._instruments.observe(catalogue.CHECKPOINT_DURATION, time.perf_counter() - began)
        self._instruments.observe(catalogue.CHECKPOINT_SIZE, len(commit.snapshot))
        self._activity.checkpointed(job_id, len(commit.snapshot))
        return reached

    def job(self, job_id: str) -> StoredJob:
        with self._measured("job"):
            return self._store.job(job_id)

    def jobs(self) -> list[StoredJob]:
        with self._measured("jobs"):
            return self._store.jobs()

    def snapshots(self, job_id: str) -> list[Snapshot]:
        with self._measured("snapshots"):
            return self._store.snapshots(job_id)

    def prune_snapshots(self, job_id: str, token: int, *, keep: int) -> None:
        with self._measured("prune_snapshots"):
            self._store.prune_snapshots(job_id, token, keep=keep)

    def events(self, job_id: str, *, after: int = 0, limit: int = 1000) -> list[tuple[int, bytes]]:
        with self._measured("events"):
            return self._store.events(job_id, after=after, limit=limit)

    def epochs(self, job_id: str) -> dict[int, bytes]:
        with self._measured("epochs"):
            return self._store.epochs(job_id)

    def epoch(self, job_id: str, number: int) -> bytes | None:
        with self._measured("epoch"):
            return self._store.epoch(job_id, number)

    def delete(self, job_id: str, token: int) -> None:
        with self._measured("delete"):
            self._store.delete(job_id, token)

    def close(self) -> None:
        self._store.close()

    @contextmanager
    def _measured(self, operation: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        except StoreError as error:
            self._instruments.count(catalogue.STORE_ERRORS, operation)
            if isinstance(error, Fenced):
                self._instruments.count(catalogue.FENCING_CONFLICTS)
            if isinstance(error, StoreUnavailable):
                self._instruments.set(catalogue.STORE_AVAILABLE, 0)
            raise
        seconds = time.perf_counter() - began
        self._instruments.set(catalogue.STORE_AVAILABLE, 1)
        self._instruments.observe(catalogue.STORE_OPERATION, seconds, operation)
        self._step_times.add(Phase.STORE, seconds)
