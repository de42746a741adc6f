"""Makes temporary directories on a real disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.programs import ROOT


@contextmanager
def folder_on_disk() -> Iterator[Path]:
    """Yields a temporary directory on the repository's disk, because /tmp may be in memory."""
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        yield Path(folder)
