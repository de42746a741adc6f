"""Reading the begin of a file without waiting for whoever may never write to it."""

from __future__ import annotations

import errno
import os
import select
import stat

#: In which the writer of a pipe opens it.
_WRITER_MS = 1000


def read_begin(path: str | os.PathLike[str], most: int) -> bytes:
    """The first bytes of a file, `most` of them or all; a pipe will do that somebody writes to.

    Raises OSError, whose `strerror` says why in words.
    """
    # A named pipe opened otherwise waits for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        begin = b""
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            begin = _first_byte(descriptor, path)
        os.set_blocking(descriptor, True)
        return begin + file.read(most - len(begin))


def _first_byte(pipe: int, path: str | os.PathLike[str]) -> bytes:
    """None yet if its writer takes his time. Raises OSError if nobody has the other end."""
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
