"""Tests link traces in stores: storage by hash, interrupted uploads, and retention."""

import hashlib
import random

import pytest

from remy_proto.v1 import job_pb2
from remy_services.stores.archive import ArchiveError, export_job, is_file_name, put_archive
from remy_services.stores.contract import CheckpointStore, Commit, Conflict
from remy_services.stores.recordings import (
    UnusedRecordings,
    claim_recording,
    entry_of,
    has_recording,
    is_recording,
    put_recording,
    read_recording,
)
from services.tests.stores.conftest import NewStore
from services.tests.stores.model_store import ModelStore
from services.tests.stores.real_job import make_job

# Two complete parts and a shorter third one.
CONTENT = random.Random(7).randbytes((2 << 20) + 800)
SHA256 = hashlib.sha256(CONTENT).digest()


@pytest.mark.parametrize("content", [CONTENT, CONTENT[:8], CONTENT[: 1 << 20]])
def test_an_unreferenced_recording_is_kept_for_its_retention_time(
    store: CheckpointStore, content: bytes
) -> None:
    sha256 = hashlib.sha256(content).digest()
    assert not has_recording(store, sha256)
    assert read_recording(store, sha256) is None
    # A repeated upload changes nothing.
    assert [put_recording(store, content) for _ in range(2)] == [sha256, sha256]
    assert has_recording(store, sha256)
    assert read_recording(store, sha256) == content

    sweep = UnusedRecordings(store, keep_seconds=60)
    for now in (0, 59):
        sweep.sweep([sha256], now)
        sweep.sweep([], now)
        sweep.sweep([], now)
        assert claim_recording(store, sha256)
    for now in (60, 119, 120, 121):
        assert has_recording(store, sha256)
        sweep.sweep([], now)
    assert not claim_recording(store, sha256)
    assert store.jobs() == []
    assert put_recording(store, content) == sha256
    assert read_recording(store, sha256) == content


def test_an_interrupted_upload_is_invisible_and_can_be_continued(store: CheckpointStore) -> None:
    length = len(CONTENT).to_bytes(8, "little")
    store.create(entry_of(SHA256), Commit(length, [CONTENT[: 1 << 20]]))
    assert not has_recording(store, SHA256)
    assert read_recording(store, SHA256) is None
    assert put_recording(store, CONTENT) == SHA256
    assert read_recording(store, SHA256) == CONTENT


def test_a_damaged_recording_is_not_returned(store: CheckpointStore) -> None:
    store.create(entry_of(SHA256), Commit((16).to_bytes(8, "little"), [CONTENT[:16]]))
    assert read_recording(store, SHA256) is None


def test_concurrent_uploads_of_one_recording_succeed() -> None:
    class Contended(ModelStore):
        """Another upload commits first, once."""

        had_conflict = False

        def commit(self, job_id: str, token: int, revision: int, commit: Commit) -> int:
            if not self.had_conflict:
                self.had_conflict = True
                super().commit(job_id, token, revision, commit)
                raise Conflict("another revision", revision + 1)
            return super().commit(job_id, token, revision, commit)

    store = Contended()
    assert put_recording(store, CONTENT) == SHA256
    assert store.had_conflict
    assert read_recording(store, SHA256) == CONTENT


def test_recording_entries_are_not_jobs() -> None:
    assert is_recording(entry_of(SHA256))
    assert not is_recording("trace-1")
    assert is_file_name("trace-1")
    assert not is_file_name(entry_of(SHA256))


def _add_trace_reference(store: CheckpointStore) -> None:
    """Adds a link with the recording to the job's specification."""
    record = job_pb2.JobRecord.FromString(store.job("job-1").record)
    record.job.spec.network.links.add().trace.sha256 = SHA256.hex()
    stored = store.job("job-1")
    token = store.acquire("job-1", "test")
    event = job_pb2.JobEvent(revision=stored.revision + 1).SerializeToString()
    store.commit("job-1", token, stored.revision, Commit(record.SerializeToString(), [event]))


def test_archives_include_the_recordings_of_their_job(
    new_store: NewStore, store: CheckpointStore
) -> None:
    make_job(store)
    _add_trace_reference(store)
    with pytest.raises(
        ArchiveError, match=f"references the trace {SHA256.hex()}, which is not in the store"
    ):
        export_job(store, "job-1")
    put_recording(store, CONTENT)
    sealed = job_pb2.SealedJobArchive.FromString(export_job(store, "job-1"))
    archive = job_pb2.JobArchive.FromString(sealed.archive)
    other = new_store()
    put_archive(other, archive)
    assert read_recording(other, SHA256) == CONTENT
    assert export_job(other, "job-1") == export_job(store, "job-1")

    archive.traces[0].opportunities_us = CONTENT[:8]
    with pytest.raises(ArchiveError, match=f"lacks the trace {SHA256.hex()}"):
        put_archive(new_store(), archive)
