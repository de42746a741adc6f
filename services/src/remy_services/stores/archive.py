"""Archives: whole jobs as sealed files, to move them between stores, and a backup of them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import fsspec
from fsspec.implementations.local import LocalFileSystem
from google.protobuf.message import DecodeError

from remy_farm.files import FileError, write_file
from remy_proto.completion import complete
from remy_proto.v1 import job_pb2
from remy_services.jobs.requests import named_recordings
from remy_services.stores.contract import (
    CheckpointStore,
    Commit,
    StoreError,
    StoreUnavailable,
    newest_snapshot,
)
from remy_services.stores.recordings import is_recording, put_recording, read_recording

#: Version of the message JobArchive. Another one cannot be read.
FORMAT_VERSION = 2
#: An archive that is larger is not read.
MOST_BYTES = 256 << 20

_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class ArchiveError(StoreError):
    """What should be a job's archive is not, or is damaged. The message is one sentence."""


def is_file_name(job_id: str) -> bool:
    """Whether a job's id can name its file, and nothing outside of the file's folder."""
    return _JOB_ID.fullmatch(job_id) is not None and not is_recording(job_id)


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
        archive = complete(job_pb2.JobArchive.FromString(sealed.archive))
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
    for trace in archive.traces:
        put_recording(store, trace.opportunities_us)
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
    store: CheckpointStore, data: bytes, *, job_id: str | None = None, limit_bytes: int = MOST_BYTES
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
            f"the archive has format version {archive.format_version}, and this program reads "
            f"version {FORMAT_VERSION} only; import it with the version of remy-farm that wrote "
            "it, and finish or fetch the job there"
        )
    job_id = archive.record.job.id
    if not is_file_name(job_id):
        raise ArchiveError(
            f"the archive's job has the id {job_id[:200]!r}; 1 to 128 letters, digits and . _ - "
            "are allowed, a letter or digit first"
        )
    held = {hashlib.sha256(trace.opportunities_us).digest() for trace in archive.traces}
    for sha256 in named_recordings(archive.record.job):
        if sha256 not in held:
            raise ArchiveError(f"the archive lacks the trace {sha256.hex()}, which its job follows")
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
        archive = job_pb2.JobArchive(
            format_version=FORMAT_VERSION,
            record=job_pb2.JobRecord.FromString(store.job(job_id).record),
            events=[job_pb2.JobEvent.FromString(event) for event in _history(store, job_id)],
            epochs=[job_pb2.JobEpoch.FromString(epochs[number]) for number in sorted(epochs)],
        )
    except DecodeError as error:
        raise ArchiveError(
            f"job {job_id} is damaged: what the store holds cannot be read"
        ) from error
    for sha256 in named_recordings(archive.record.job):
        opportunities_us = read_recording(store, sha256)
        if opportunities_us is None:
            raise ArchiveError(f"job {job_id} follows the trace {sha256.hex()}, which is not there")
        archive.traces.add(sha256=sha256, opportunities_us=opportunities_us)
    if snapshot is not None:
        archive.snapshot = snapshot.data
        archive.snapshot_revision = snapshot.revision
        archive.snapshot_schema_version = snapshot.schema_version
    return archive


def _history(store: CheckpointStore, job_id: str) -> list[bytes]:
    events: list[bytes] = []
    while page := store.events(job_id, after=len(events), limit=_EVENTS_AT_ONCE):
        events += [event for _, event in page]
    return events


#: What a URL of a mirror may begin with.
SCHEMES = ("file", "s3", "memory")

_SUFFIX = ".remyjob"
# How long an object store may take: a mirror that hangs must not hold up whoever feeds it for long.
_OPTIONS = {
    "s3": {
        "config_kwargs": {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 2}}
    }
}


class Backup:
    """Holds the newest archive of each job as `<url>/<job id>.remyjob`.

    What goes wrong with a file is returned, never raised: a mirror that fails must not stop a job.
    """

    def __init__(self, url: str) -> None:
        """The mirror at this URL, as in file:///var/backups/farm or s3://bucket/farm.

        Credentials of an object store come from where its other tools find them. Raises StoreError
        for a URL that makes no sense, or whose object store there is no support for here.
        """
        parts = urlsplit(url)
        if parts.scheme not in SCHEMES:
            allowed = ", ".join(f"{scheme}://" for scheme in SCHEMES)
            raise StoreError(
                f"the URL of the mirror has scheme {parts.scheme!r}; one of {allowed} is needed"
            )
        if not _is_place(parts):
            raise StoreError(
                "the URL of the mirror does not name a place and nothing else; "
                "file:///DIRECTORY or s3://BUCKET/FOLDER would"
            )
        try:
            self._files, self._folder = fsspec.core.url_to_fs(url, **_OPTIONS.get(parts.scheme, {}))
        except ImportError as error:
            raise StoreError(
                f"a mirror at {parts.scheme}:// needs s3fs, which is not installed: "
                "pip install 'remy-farm-services[s3]'"
            ) from error
        self._url = url.rstrip("/")

    def save(self, store: CheckpointStore, job_id: str) -> str | None:
        """Writes the job's archive as it is now; None, or one sentence about why it is not there.

        At any moment the file is there as it was or as it will be, never a part of it.
        """
        try:
            return self.write(job_id, export_job(store, job_id))
        except StoreError as error:
            return str(error)

    def write(self, job_id: str, archive: bytes) -> str | None:
        """Writes an archive; None, or one sentence about why it is not there."""
        if not is_file_name(job_id):
            return f"{self._url} cannot have a file for a job with the id {job_id[:200]!r}"
        path = self._path(job_id)
        try:
            if isinstance(self._files, LocalFileSystem):
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                write_file(path, archive)
            else:
                # An object is replaced in one step.
                self._files.pipe_file(path, archive)
        except FileError as error:
            return str(error)
        # What the libraries of object stores raise has no common name.
        except Exception as error:
            return self._failure("written", job_id, error)
        return None

    def remove(self, job_id: str) -> str | None:
        """Removes the job's archive if there is one; None, or one sentence about why it stays."""
        if not is_file_name(job_id):
            return None
        try:
            self._files.rm_file(self._path(job_id))
        except FileNotFoundError:
            return None
        except Exception as error:
            return self._failure("removed", job_id, error)
        return None

    def place(self, job_id: str) -> str | None:
        """Where the job's archive is, for people; None if there is none, or nobody can tell."""
        try:
            has = is_file_name(job_id) and self._files.exists(self._path(job_id))
        except Exception:
            return None
        return f"{self._url}/{job_id}{_SUFFIX}" if has else None

    def _path(self, job_id: str) -> str:
        return f"{self._folder.rstrip('/')}/{job_id}{_SUFFIX}"

    def _failure(self, what: str, job_id: str, error: Exception) -> str:
        why = " ".join(str(error).split()) or type(error).__name__
        return f"{self._url}/{job_id}{_SUFFIX} cannot be {what} ({why})"


def _is_place(url: SplitResult) -> bool:
    """Whether it names a folder, without a user, a password or options."""
    if url.query or "@" in url.netloc:
        return False
    if url.scheme == "file":
        return not url.netloc and url.path.startswith("/")
    return bool(url.netloc)
