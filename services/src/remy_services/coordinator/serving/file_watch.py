"""Files that may change while they are in use: certificates, tokens."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

#: What tells one content of a file from another without reading it.
Signature = tuple[tuple[int, int, int] | None, ...]


def signature_of(paths: Iterable[Path]) -> Signature:
    """Differs once a file was replaced, changed, or is gone."""
    return tuple(_signature(path) for path in paths)


def _signature(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_ino, status.st_mtime_ns, status.st_size)
