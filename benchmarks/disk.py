"""Folders for what is measured on a disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.programs import ROOT


@contextmanager
def folder_on_disk() -> Iterator[Path]:
    """On the disk that the repository is on: a folder for temporary files may be in memory."""
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        yield Path(folder)
