"""Reading a file of bounded size."""

import os
from pathlib import Path

from remy_services.files.errors import FileError, reason


def read_file(path: str | os.PathLike[str], *, limit: int) -> bytes:
    """The file's bytes; a pipe will do.

    Raises FileError if it cannot be read or holds more than `limit` bytes, of which no more than
    one is read beyond the limit.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise FileError(f"{os.fspath(path)}: cannot be read ({reason(error)})") from error
    if len(data) > limit:
        raise FileError(f"{os.fspath(path)} is too large; at most {limit} bytes are allowed")
    return data
