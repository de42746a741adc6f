"""Reading files of bounded size, and writing files that are either complete or absent."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from remy_proto.files import read_begin

__all__ = [
    "FileError",
    "make_folder",
    "read_file",
    "reason",
    "write_file",
]


class FileError(Exception):
    """A file cannot be read or written, or has another content; the message is one sentence."""


def reason(error: OSError) -> str:
    """Returns the operating system's reason, in lower case, without error number and path."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:]


def read_file(path: str | os.PathLike[str], *, limit: int) -> bytes:
    """Reads a file or pipe of at most `limit` bytes.

    Raises FileError if it cannot be read or is larger. At most `limit` + 1 bytes are read.
    """
    try:
        data = read_begin(path, limit + 1)
    except OSError as error:
        raise FileError(f"{os.fspath(path)}: cannot be read ({reason(error)})") from error
    if len(data) > limit:
        raise FileError(f"{os.fspath(path)} is too large; at most {limit} bytes are allowed")
    return data


def make_folder(path: Path) -> None:
    """Creates a folder, with its parents, if it is missing. Raises FileError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{path}: cannot be created ({reason(error)})") from error


def write_file(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Replaces the content of a file atomically; text is written as UTF-8.

    Writes a temporary file in the same folder, flushes it to the disk, renames it, and flushes the
    folder. Raises FileError if any of this fails, and then leaves the folder unchanged.
    """
    content = data.encode() if isinstance(data, str) else data
    target = Path(path)
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        try:
            _write_new(temporary, content)
            temporary.replace(target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(target.parent)
    except OSError as error:
        raise FileError(f"{target}: cannot be written ({reason(error)})") from error


def _write_new(path: Path, content: bytes) -> None:
    """Writes a file that must not exist yet, with default permissions (by the umask)."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
