"""Read the first bytes of a file without blocking on a pipe that nobody writes to."""

from __future__ import annotations

import errno
import os
import select
import stat

#: Time allowed for the writer of a pipe to open it.
_WRITER_MS = 1000


def read_begin(path: str | os.PathLike[str], most: int) -> bytes:
    """Returns at most `most` bytes from the start of a file or of a pipe.

    Raises OSError if the file cannot be read, or if nobody has the pipe open for writing; its
    `strerror` gives the reason in words.
    """
    # Without O_NONBLOCK, opening a named pipe blocks until a writer opens it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        begin = b""
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            begin = _first_byte(descriptor, path)
        os.set_blocking(descriptor, True)
        return begin + file.read(most - len(begin))


def _first_byte(pipe: int, path: str | os.PathLike[str]) -> bytes:
    """The first byte, or nothing if the writer has not written yet.

    Raises OSError if nobody has the pipe open for writing.
    """
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    poll.poll(_WRITER_MS)
    try:
        begin = os.read(pipe, 1)
    except BlockingIOError:
        return b""
    if not begin:
        raise OSError(errno.ENXIO, "a pipe that nobody writes to", os.fspath(path))
    return begin
