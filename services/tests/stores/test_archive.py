"""Tests job archives: export, import, and detection of damage."""

import hashlib
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from remy_proto.v1 import job_pb2
from remy_services.stores.archive import (
    ArchiveError,
    export_job,
    import_job,
    put_archive,
    read_archive,
    seal_archive,
    unseal_archive,
)
from remy_services.stores.contract import (
    CheckpointStore,
    Commit,
    JobExists,
    JobMissing,
    StoreUnavailable,
)
from services.tests.stores.conftest import NewStore
from services.tests.stores.contents import JobContents, job_contents
from services.tests.stores.damage import damage_snapshot
from services.tests.stores.failing_store import FailingStore
from services.tests.stores.model_store import ModelStore
from services.tests.stores.real_job import make_job


@pytest.fixture
def archive(store: CheckpointStore) -> bytes:
    make_job(store)
    return export_job(store, "job-1")


def _without_holder(contents: JobContents) -> JobContents:
    """Reduces contents to those of an archive: no holder, and only the newest snapshot."""
    return replace(contents, job=replace(contents.job, token=0), snapshots=contents.snapshots[:1])


def test_export_and_import_preserve_a_job(new_store: NewStore, store: CheckpointStore) -> None:
    """Round trip through ModelStore, which also covers moves between SQLite and Redis."""
    make_job(store)
    between, other = ModelStore(), new_store()

    assert import_job(between, export_job(store, "job-1")) == "job-1"
    assert import_job(other, export_job(between, "job-1")) == "job-1"

    expected = _without_holder(job_contents(store, "job-1"))
    assert job_contents(between, "job-1") == expected
    assert job_contents(other, "job-1") == expected
    assert [each.revision for each in expected.snapshots] == [3]
    assert export_job(other, "job-1") == export_job(store, "job-1")


def test_an_imported_job_can_be_continued(store: CheckpointStore, archive: bytes) -> None:
    assert import_job(store, archive, job_id="copy") == "copy"

    copy = store.job("copy")
    assert job_pb2.JobRecord.FromString(copy.record).job.id == "copy"
    token = store.acquire("copy", "me")
    assert store.commit("copy", token, copy.revision, Commit(b"", [b"more"])) == copy.revision + 1
    assert store.job("job-1").revision == copy.revision


def test_an_existing_id_is_refused(store: CheckpointStore, archive: bytes) -> None:
    with pytest.raises(JobExists):
        import_job(store, archive)

    assert store.job("job-1").token > 0


def test_the_request_key_is_not_imported(store: CheckpointStore, archive: bytes) -> None:
    import_job(store, archive, job_id="copy")

    assert store.create("x", Commit(b"", [b"e"]), request_key="request of job-1") == "job-1"


def test_damaged_snapshots_are_not_exported(store: CheckpointStore) -> None:
    make_job(store)
    damage_snapshot(store, "job-1", 3)

    archive = read_archive(store, "job-1")

    assert (archive.snapshot, archive.snapshot_revision) == (b"state 0", 2)


def test_a_job_without_snapshots_round_trips(store: CheckpointStore) -> None:
    archive = job_pb2.JobArchive(
        format_version=2,
        record=job_pb2.JobRecord(job=job_pb2.Job(id="new")),
        events=[job_pb2.JobEvent(revision=1)],
    )
    put_archive(store, archive)

    assert store.snapshots("new") == []
    assert read_archive(store, "new") == archive
    with pytest.raises(JobMissing):
        export_job(store, "other")


def test_any_damage_is_detected(archive: bytes) -> None:
    places = random.Random(1)
    for _ in range(200):
        damaged = bytearray(archive)
        damaged[places.randrange(len(damaged))] ^= 1 << places.randrange(8)
        with pytest.raises(ArchiveError):
            unseal_archive(bytes(damaged))
    for length in range(0, len(archive), 7):
        with pytest.raises(ArchiveError):
            unseal_archive(archive[:length])
    assert unseal_archive(archive).record.job.id == "job-1"


def test_other_files_are_refused() -> None:
    payload = b"\xff\xff"
    sealed = job_pb2.SealedJobArchive(archive=payload, sha256=hashlib.sha256(payload).digest())
    for data in (b"", b"Dear Sir or Madam", sealed.SerializeToString()):
        with pytest.raises(ArchiveError, match=r"is damaged|is not a job archive"):
            unseal_archive(data)


def test_the_size_limit_is_enforced(archive: bytes) -> None:
    size = len(archive)
    assert unseal_archive(archive, limit_bytes=size).format_version == 2
    with pytest.raises(ArchiveError, match=f"has {size} bytes; at most {size - 1} are allowed"):
        unseal_archive(archive, limit_bytes=size - 1)


def _set(**fields: object) -> Callable[[job_pb2.JobArchive], None]:
    def change(archive: job_pb2.JobArchive) -> None:
        for name, value in fields.items():
            setattr(archive, name, value)

    return change


def _rename(job_id: str) -> Callable[[job_pb2.JobArchive], None]:
    def change(archive: job_pb2.JobArchive) -> None:
        archive.record.job.id = job_id

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            _set(format_version=1),
            "format version 1, but this program reads version 2 only; import it",
        ),
        (
            _set(snapshot_revision=0),
            "snapshot is of revision 0, but its history has revisions 1 to 4",
        ),
        (
            _set(snapshot_revision=5),
            "snapshot is of revision 5, but its history has revisions 1 to 4",
        ),
        (_rename(""), "has the id ''; an id must be 1 to 128 letters"),
        (_rename("../../etc/passwd"), "1 to 128 letters, digits or . _ -"),
        (_rename(".."), "start with a letter or digit"),
        (_rename("x" * 129), "1 to 128 letters"),
        (lambda archive: archive.events.pop(0), "are not 1, 2, 3"),
        (lambda archive: archive.events.append(archive.events[0]), "are not 1, 2, 3"),
        (lambda archive: archive.ClearField("events"), "history is empty"),
        (
            lambda archive: archive.epochs.append(archive.epochs[0]),
            "two epochs with the same number",
        ),
    ],
)
def test_inconsistent_archives_are_refused(
    store: CheckpointStore,
    archive: bytes,
    change: Callable[[job_pb2.JobArchive], object],
    message: str,
) -> None:
    changed = unseal_archive(archive)
    change(changed)

    with pytest.raises(ArchiveError) as raised:
        import_job(store, seal_archive(changed))
    assert message in str(raised.value)
    with pytest.raises(ArchiveError):
        put_archive(store, changed)
    assert [job.job_id for job in store.jobs()] == ["job-1"]


def test_undecodable_jobs_are_not_exported(store: CheckpointStore) -> None:
    store.create("odd", Commit(b"\xff", [b"e"]))

    with pytest.raises(ArchiveError, match="job odd is damaged"):
        export_job(store, "odd")


class _ChangingStore(FailingStore):
    """A store whose job changes during the first `changes` reads."""

    def __init__(self, inner: CheckpointStore, changes: int) -> None:
        super().__init__(inner, fail_at=0, when="before")
        self.changes = changes

    def epochs(self, job_id: str) -> dict[int, bytes]:
        found = super().epochs(job_id)
        if self.changes:
            self.changes -= 1
            job = self.job(job_id)
            event = job_pb2.JobEvent(revision=job.revision + 1).SerializeToString()
            self.commit(job_id, job.token, job.revision, Commit(job.record, [event]))
        return found


def test_archives_are_consistent_snapshots(store: CheckpointStore) -> None:
    make_job(store)

    archive = read_archive(_ChangingStore(store, changes=3), "job-1")

    assert len(archive.events) == store.job("job-1").revision == 7
    assert archive == read_archive(store, "job-1")
    with pytest.raises(StoreUnavailable, match="changes faster than it can be read"):
        read_archive(_ChangingStore(store, changes=1000), "job-1")
