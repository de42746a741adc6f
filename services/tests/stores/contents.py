"""Reads the complete contents of a store, for comparisons."""

from __future__ import annotations

from dataclasses import dataclass

from remy_services.stores.contract import CheckpointStore, Snapshot, StoredJob


@dataclass(frozen=True)
class JobContents:
    job: StoredJob
    events: list[tuple[int, bytes]]
    epochs: dict[int, bytes]
    snapshots: list[Snapshot]


def contents(store: CheckpointStore) -> dict[str, JobContents]:
    """Returns the contents of all jobs."""
    return {job.job_id: job_contents(store, job.job_id) for job in store.jobs()}


def job_contents(store: CheckpointStore, job_id: str) -> JobContents:
    """Returns all data of one job, with at most 1000 events."""
    return JobContents(
        store.job(job_id), store.events(job_id), store.epochs(job_id), store.snapshots(job_id)
    )
