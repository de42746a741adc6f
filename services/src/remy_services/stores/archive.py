"""Job archives: complete jobs as checksummed files, for moving jobs and for the mirror."""

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
from remy_services.jobs.requests import referenced_traces
from remy_services.stores.contract import (
    CheckpointStore,
    Commit,
    StoreError,
    StoreUnavailable,
    newest_snapshot,
)
from remy_services.stores.recordings import is_recording, put_recording, read_recording

#: Version of the JobArchive message. Other versions are refused.
FORMAT_VERSION = 2
#: Size limit of archives that are read.
MAX_BYTES = 256 << 20

_JOB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class ArchiveError(StoreError):
    """The data is not a job archive, or is damaged. The message is one sentence."""


def is_file_name(job_id: str) -> bool:
    """Returns whether a job id is safe as a file name inside a folder."""
    return _JOB_ID.fullmatch(job_id) is not None and not is_recording(job_id)


def seal_archive(archive: job_pb2.JobArchive) -> bytes:
    """Serializes an archive with its checksum."""
    payload = archive.SerializeToString(deterministic=True)
    return job_pb2.SealedJobArchive(
        archive=payload, sha256=hashlib.sha256(payload).digest()
    ).SerializeToString(deterministic=True)


def unseal_archive(data: bytes, *, limit_bytes: int = MAX_BYTES) -> job_pb2.JobArchive:
    """Parses a serialized archive and verifies its checksum and contents.


    Raises ArchiveError.
    """
    if len(data) > limit_bytes:
        raise ArchiveError(f"the archive has {len(data)} bytes; at most {limit_bytes} are allowed")
    try:
        sealed = job_pb2.SealedJobArchive.FromString(data)
        if not sealed.archive or hashlib.sha256(sealed.archive).digest() != sealed.sha256:
            raise ArchiveError(
                f"the archive ({len(data)} bytes) is damaged: its content does not match its hash"
            )
        archive = complete(job_pb2.JobArchive.FromString(sealed.archive))
    except DecodeError as error:
        raise ArchiveError(f"the file ({len(data)} bytes) is not a job archive") from error
    check_archive(archive)
    return archive


def put_archive(store: CheckpointStore, archive: job_pb2.JobArchive) -> str:
    """Creates the archived job, under the id in its record, and returns the id.

    The job has no holder until it is acquired, and no request key. Raises ArchiveError, JobExists
    and other StoreErrors.
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
    store: CheckpointStore, data: bytes, *, job_id: str | None = None, limit_bytes: int = MAX_BYTES
) -> str:
    """Creates a job from a serialized archive, optionally under another id; returns the id.


    Raises ArchiveError, JobExists and other StoreErrors.
    """
    archive = unseal_archive(data, limit_bytes=limit_bytes)
    if job_id is not None:
        archive.record.job.id = job_id
    return put_archive(store, archive)


def check_archive(archive: job_pb2.JobArchive) -> None:
    """Raises ArchiveError for an archive that cannot have come from a store."""
    if archive.format_version != FORMAT_VERSION:
        raise ArchiveError(
            f"the archive has format version {archive.format_version}, but this program reads "
            f"version {FORMAT_VERSION} only; import it with the version of remy-farm that wrote "
            "it, and finish or fetch the job there"
        )
    job_id = archive.record.job.id
    if not is_file_name(job_id):
        raise ArchiveError(
            f"the archive's job has the id {job_id[:200]!r}; an id must be 1 to 128 letters, "
            "digits or . _ - and start with a letter or digit"
        )
    held = {hashlib.sha256(trace.opportunities_us).digest() for trace in archive.traces}
    for sha256 in referenced_traces(archive.record.job):
        if sha256 not in held:
            raise ArchiveError(
                f"the archive lacks the trace {sha256.hex()}, which its job references"
            )
    revisions = [event.revision for event in archive.events]
    if not revisions or revisions != list(range(1, len(revisions) + 1)):
        raise ArchiveError("the archive's history is empty or its revisions are not 1, 2, 3, ...")
    epochs = [epoch.record.epoch for epoch in archive.epochs]
    if len(set(epochs)) < len(epochs):
        raise ArchiveError("the archive has two epochs with the same number")
    if archive.snapshot and not 1 <= archive.snapshot_revision <= len(revisions):
        raise ArchiveError(
            f"the archive's snapshot is of revision {archive.snapshot_revision}, but its history "
            f"has revisions 1 to {len(revisions)}"
        )


_MAX_ATTEMPTS = 20
_EVENTS_PER_PAGE = 1000


def export_job(store: CheckpointStore, job_id: str) -> bytes:
    """Serializes a job with its newest intact snapshot.

    Raises ArchiveError if its record or history cannot be decoded, StoreUnavailable if the job
    keeps changing while it is read, and other StoreErrors.
    """
    return seal_archive(read_archive(store, job_id))


def read_archive(store: CheckpointStore, job_id: str) -> job_pb2.JobArchive:
    """Reads a job as a consistent archive message. Raises like `export_job`."""
    for _ in range(_MAX_ATTEMPTS):
        revision = store.job(job_id).revision
        archive = _read(store, job_id)
        # The reads are consistent if the revision did not change between the first and the last.
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
        raise ArchiveError(f"job {job_id} is damaged: its stored data cannot be decoded") from error
    for sha256 in referenced_traces(archive.record.job):
        opportunities_us = read_recording(store, sha256)
        if opportunities_us is None:
            raise ArchiveError(
                f"job {job_id} references the trace {sha256.hex()}, which is not in the store"
            )
        archive.traces.add(sha256=sha256, opportunities_us=opportunities_us)
    if snapshot is not None:
        archive.snapshot = snapshot.data
        archive.snapshot_revision = snapshot.revision
        archive.snapshot_schema_version = snapshot.schema_version
    return archive


def _history(store: CheckpointStore, job_id: str) -> list[bytes]:
    events: list[bytes] = []
    while page := store.events(job_id, after=len(events), limit=_EVENTS_PER_PAGE):
        events += [event for _, event in page]
    return events


#: Allowed schemes of mirror URLs.
SCHEMES = ("file", "s3", "memory")

_SUFFIX = ".remyjob"
# Short timeouts, so that a stalled object store does not block the mirror's writer for long.
_OPTIONS = {
    "s3": {
        "config_kwargs": {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 2}}
    }
}


class Mirror:
    """A mirror: stores the newest archive of each job as `<url>/<job id>.remyjob`.

    File errors are returned and never raised, because a failing mirror must not stop a job.
    """

    def __init__(self, url: str) -> None:
        """Opens the mirror at a URL such as file:///var/backups/farm or s3://bucket/farm.

        Object stores use the standard sources of credentials. Raises StoreError for an invalid URL,
        and if support for its object store is not installed.
        """
        parts = urlsplit(url)
        if parts.scheme not in SCHEMES:
            allowed = ", ".join(f"{scheme}://" for scheme in SCHEMES)
            raise StoreError(
                f"the mirror URL has scheme {parts.scheme!r}; it must be one of {allowed}"
            )
        if not _is_folder_url(parts):
            raise StoreError(
                "the mirror URL must be of the form file:///DIRECTORY or s3://BUCKET/FOLDER, "
                "without user, password or options"
            )
        try:
            self._files, self._folder = fsspec.core.url_to_fs(url, **_OPTIONS.get(parts.scheme, {}))
        except ImportError as error:
            raise StoreError(
                f"a mirror at {parts.scheme}:// requires s3fs, which is not installed: "
                "pip install 'remy-farm-services[s3]'"
            ) from error
        self._url = url.rstrip("/")

    def save(self, store: CheckpointStore, job_id: str) -> str | None:
        """Writes the job's present archive. Returns None, or one sentence about the failure.

        The file is replaced atomically.
        """
        try:
            return self.write(job_id, export_job(store, job_id))
        except StoreError as error:
            return str(error)

    def write(self, job_id: str, archive: bytes) -> str | None:
        """Writes an archive. Returns None, or one sentence about the failure."""
        if not is_file_name(job_id):
            return (
                f"{self._url} cannot hold a job with the id {job_id[:200]!r}, which is not a safe "
                "file name"
            )
        path = self._path(job_id)
        try:
            if isinstance(self._files, LocalFileSystem):
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                write_file(path, archive)
            else:
                # Object stores replace an object atomically.
                self._files.pipe_file(path, archive)
        except FileError as error:
            return str(error)
        # The exceptions of object-store libraries have no common base class.
        except Exception as error:
            return self._failure("written", job_id, error)
        return None

    def remove(self, job_id: str) -> str | None:
        """Deletes the job's archive if it exists.

        Returns None, or one sentence about the failure.
        """
        if not is_file_name(job_id):
            return None
        try:
            self._files.rm_file(self._path(job_id))
        except FileNotFoundError:
            return None
        except Exception as error:
            return self._failure("removed", job_id, error)
        return None

    def archive_location(self, job_id: str) -> str | None:
        """Returns the URL of the job's archive; None if it is missing or cannot be checked."""
        try:
            exists = is_file_name(job_id) and self._files.exists(self._path(job_id))
        except Exception:
            return None
        return f"{self._url}/{job_id}{_SUFFIX}" if exists else None

    def _path(self, job_id: str) -> str:
        return f"{self._folder.rstrip('/')}/{job_id}{_SUFFIX}"

    def _failure(self, what: str, job_id: str, error: Exception) -> str:
        why = " ".join(str(error).split()) or type(error).__name__
        return f"{self._url}/{job_id}{_SUFFIX} cannot be {what} ({why})"


def _is_folder_url(url: SplitResult) -> bool:
    """Returns whether the URL names a folder, without user, password or options."""
    if url.query or "@" in url.netloc:
        return False
    if url.scheme == "file":
        return not url.netloc and url.path.startswith("/")
    return bool(url.netloc)
