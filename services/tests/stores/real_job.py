"""Creates a job with real messages, as a coordinator stores it."""

from __future__ import annotations

from remy_proto.v1 import job_pb2, progress_pb2
from remy_services.stores.contract import CheckpointStore, Commit

_EPOCHS = 3
_SCHEMA_VERSION = 4


def make_job(store: CheckpointStore, job_id: str = "job-1") -> None:
    """Creates a job with a history, three epochs, and two snapshots before its last event."""
    store.create(job_id, _commit(job_id, 1), request_key=f"request of {job_id}")
    token = store.acquire(job_id, "coordinator")
    for epoch in range(_EPOCHS):
        revision = 1 + epoch
        store.commit(
            job_id,
            token,
            revision,
            _commit(
                job_id,
                revision + 1,
                snapshot=b"state %d" % epoch if epoch < _EPOCHS - 1 else None,
                epoch=epoch,
            ),
        )


def _commit(
    job_id: str, revision: int, *, snapshot: bytes | None = None, epoch: int | None = None
) -> Commit:
    record = job_pb2.JobRecord(
        job=job_pb2.Job(id=job_id, name="a job", revision=revision, weight=0.5),
        client_request_id=f"request of {job_id}",
    )
    event = job_pb2.JobEvent(
        revision=revision,
        progress=progress_pb2.ProgressEvent(sequence=revision, wall_seconds=0.25),
    )
    epochs = {}
    if epoch is not None:
        epochs[epoch] = job_pb2.JobEpoch(
            record=progress_pb2.EpochRecord(epoch=epoch, rules=8), cpu_seconds=1.5 * epoch
        ).SerializeToString(deterministic=True)
    return Commit(
        record.SerializeToString(deterministic=True),
        [event.SerializeToString(deterministic=True)],
        snapshot,
        _SCHEMA_VERSION if snapshot is not None else 0,
        epochs=epochs,
    )
