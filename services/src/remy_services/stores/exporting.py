"""Reads a whole job out of a store, as it is at one moment."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from remy_farm.v1 import job_pb2
from remy_services.stores.archive import FORMAT_VERSION, ArchiveError, check_archive, seal_archive
from remy_services.stores.contract import CheckpointStore, StoreUnavailable
from remy_services.stores.snapshots import newest_snapshot

_TRIES = 20
_EVENTS_AT_ONCE = 1000


def export_job(store: CheckpointStore, job_id: str) -> bytes:
    """The job's archive as a file's content: its newest intact snapshot, and all of the rest.

    Raises ArchiveError for a job whose record or history cannot be read, StoreUnavailable for one
    that changes all the time, and other StoreErrors.
    """
    return seal_archive(read_archive(store, job_id))


def read_archive(store: CheckpointStore, job_id: str) -> job_pb2.JobArchive:
    """The same as a message."""
    for _ in range(_TRIES):
        revision = store.job(job_id).revision
        archive = _read(store, job_id)
        # Several reads are of one moment if nothing has changed between the first and the last.
        if store.job(job_id).revision == revision:
            check_archive(archive)
            return archive
    raise StoreUnavailable(f"job {job_id} changes faster than it can be read; try again later")


def _read(store: CheckpointStore, job_id: str) -> job_pb2.JobArchive:
    snapshot, _ = newest_snapshot(store, job_id)
    epochs = store.epochs(job_id)
    try:
        return job_pb2.JobArchive(
            format_version=FORMAT_VERSION,
            record=job_pb2.JobRecord.FromString(store.job(job_id).record),
            events=[job_pb2.JobEvent.FromString(event) for event in _history(store, job_id)],
            epochs=[job_pb2.JobEpoch.FromString(epochs[number]) for number in sorted(epochs)],
            snapshot=b"" if snapshot is None else snapshot.data,
            snapshot_revision=0 if snapshot is None else snapshot.revision,
            snapshot_schema_version=0 if snapshot is None else snapshot.schema_version,
        )
    except DecodeError as error:
        raise ArchiveError(
            f"job {job_id} is damaged: what the store holds cannot be read"
        ) from error


def _history(store: CheckpointStore, job_id: str) -> list[bytes]:
    events: list[bytes] = []
    while page := store.events(job_id, after=len(events), limit=_EVENTS_AT_ONCE):
        events += [event for _, event in page]
    return events
