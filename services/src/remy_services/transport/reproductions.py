"""Stores the requests of tasks that killed their workers, so that the failure can be reproduced."""

from __future__ import annotations

from pathlib import Path

import fsspec.core

from remy_farm.evaluation.dispatcher import KeepReproduction
from remy_farm.files import write_file


def reproduction_writer(place: str | Path) -> KeepReproduction:
    """Returns a function that stores requests in a folder or under an fsspec URL.

    The folder is created with the first request.
    """

    def keep(name: str, content: bytes) -> str:
        path = f"{place}/{name}"
        if "://" in path:
            files, key = fsspec.core.url_to_fs(path, auto_mkdir=path.startswith("file:"))
            files.pipe_file(key, content)
        else:
            Path(place).mkdir(parents=True, exist_ok=True)
            write_file(path, content)
        return path

    return keep
