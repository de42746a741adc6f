"""Jobs as files: to move them between stores, and to have them if a store is lost."""

from __future__ import annotations

import hashlib
import re

from google.protobuf.message import DecodeError

from remy_farm.v1 import job_pb2
from remy_services.stores.contract import CheckpointStore, Commit, StoreError

#: Version of the message JobArchive. Another one cannot be read.
FORMAT_VERSION = 1
#: An archive that is larger is not read.
MOST_BYTES = 256 << 20

_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class ArchiveError(StoreError):
    """What should be a job's archive is not, or is damaged. The message is one sentence."""


def is_file_name(job_id: str) -> bool:
    """Whether a job's id can name its file, and nothing outside of the file's folder."""
    return _JOB_ID.fullmatch(job_id) is not None


def seal_archive(archive: job_pb2.JobArchive) -> bytes:
    """The archive as a file's content."""
    payload = archive.SerializeToString(deterministic=True)
    return job_pb2.SealedJobArchive(
        archive=payload, sha256=hashlib.sha256(payload).digest()
    ).SerializeToString(deterministic=True)


def unseal_archive(data: bytes, *, limit_bytes: int = MOST_BYTES) -> job_pb2.JobArchive:
    """The archive that a file's content holds, complete and of a piece.

    Raises ArchiveError.
    """
    if len(data) > limit_bytes:
        raise ArchiveError(
            f"the archive is {len(data)} bytes long; at most {limit_bytes} are allowed"
        )
    try:
        sealed = job_pb2.SealedJobArchive.FromString(data)
        if not sealed.archive or hashlib.sha256(sealed.archive).digest() != sealed.sha256:
            raise ArchiveError(
                f"the archive ({len(data)} bytes) is damaged, or none: its content and its hash "
                "differ"
            )
        archive = job_pb2.JobArchive.FromString(sealed.archive)
    except DecodeError as error:
        raise ArchiveError(f"the file ({len(data)} bytes) is no archive of a job") from error
    check_archive(archive)
    return archive


def put_archive(store: CheckpointStore, archive: job_pb2.JobArchive) -> str:
    """Makes a job of the archive under the id in its record, which is returned.

    It is nobody's until it is acquired, and no request is remembered as having made it. Raises
    ArchiveError, JobExists and other StoreErrors.
    """
    check_archive(archive)
    snapshot = archive.snapshot or None
    return store.create(
        archive.record.job.id,
        Commit(
            record=archive.record.SerializeToString(deterministic=True),
            events=[event.SerializeToString(deterministic=True) for event in archive.events],
            snapshot=snapshot,
            schema_version=archive.snapshot_schema_version,
            snapshot_revision=None if snapshot is None else archive.snapshot_revision,
            epochs={
                epoch.record.epoch: epoch.SerializeToString(deterministic=True)
                for epoch in archive.epochs
            },
        ),
    )


def import_job(
    store: CheckpointStore,
    data: bytes,
    *,
    job_id: str | None = None,
    limit_bytes: int = MOST_BYTES,
) -> str:
    """Makes a job of a file's content, under another id if one is given; returns the id.

    Raises ArchiveError, JobExists and other StoreErrors.
    """
    archive = unseal_archive(data, limit_bytes=limit_bytes)
    if job_id is not None:
        archive.record.job.id = job_id
    return put_archive(store, archive)


def check_archive(archive: job_pb2.JobArchive) -> None:
    """Raises ArchiveError for an archive that no store could have held."""
    if archive.format_version != FORMAT_VERSION:
        raise ArchiveError(
            f"the archive has format version {archive.format_version}; this program reads version "
            f"{FORMAT_VERSION} only"
        )
    job_id = archive.record.job.id
    if not is_file_name(job_id):
        raise ArchiveError(
            f"the archive's job has the id {job_id[:200]!r}; 1 to 128 letters, digits and . _ - "
            "are allowed, a letter or digit first"
        )
    revisions = [event.revision for event in archive.events]
    if not revisions or revisions != list(range(1, len(revisions) + 1)):
        raise ArchiveError("the archive's history is empty, or does not count from 1 in steps of 1")
    epochs = [epoch.record.epoch for epoch in archive.epochs]
    if len(set(epochs)) < len(epochs):
        raise ArchiveError("the archive has two epochs of one number")
    if archive.snapshot and not 1 <= archive.snapshot_revision <= len(revisions):
        raise ArchiveError(
            f"the archive's snapshot is of revision {archive.snapshot_revision}; its history has "
            f"1 to {len(revisions)}"
        )
