"""A second place for jobs: a directory or an object store that has the archive of each."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import fsspec
from fsspec.implementations.local import LocalFileSystem

from remy_services.files import FileError, write_file
from remy_services.stores.archive import is_file_name
from remy_services.stores.contract import CheckpointStore, StoreError
from remy_services.stores.exporting import export_job

#: What a URL of a mirror may begin with.
SCHEMES = ("file", "s3", "memory")

_SUFFIX = ".remyjob"
# How long an object store may take: a mirror that hangs must not hold up whoever feeds it for long.
_OPTIONS = {
    "s3": {
        "config_kwargs": {"connect_timeout": 10, "read_timeout": 60, "retries": {"max_attempts": 2}}
    }
}


class Mirror:
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
                f"a mirror at {parts.scheme}:// needs s3fs; install remy-farm[s3]"
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
