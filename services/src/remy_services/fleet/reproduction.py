"""What is left of a task that kept ending its workers: a file to reproduce it with."""

from __future__ import annotations

import hashlib
from pathlib import Path

from remy_services.files import FileError, write_file
from remy_services.fleet.board import Quarantine


def describe_quarantine(quarantine: Quarantine, folder: Path | None) -> str:
    """One sentence for people, after the task's request was written to `folder`, if there is one.

    The file holds a serialized EvaluationRequest, which `remy_simulator.evaluate` takes.
    """
    what = (
        f"a task ended {len(quarantine.workers)} workers ({', '.join(quarantine.workers)}) "
        "and was given up"
    )
    if folder is None:
        return what
    content = quarantine.request.SerializeToString(deterministic=True)
    path = folder / f"task-{hashlib.sha256(content).hexdigest()[:16]}.evaluation-request.bin"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_file(path, content)
    except (FileError, OSError) as error:
        return f"{what}; its request could not be kept: {error}"
    return f"{what}; its request is in {path}"
