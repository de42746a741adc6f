"""How long a design has run, over all of its runs."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Elapsed:
    """Time used since a design began, without the pauses between its runs."""

    wall_seconds: float = 0.0
    #: CPU time of this process and all of its threads.
    cpu_seconds: float = 0.0


class Clock:
    """Goes on from what earlier runs have used."""

    def __init__(self, before: Elapsed) -> None:
        self._wall_origin = time.monotonic() - before.wall_seconds
        self._cpu_origin = time.process_time() - before.cpu_seconds

    def elapsed(self) -> Elapsed:
        """Time used up to now."""
        return Elapsed(
            wall_seconds=time.monotonic() - self._wall_origin,
            cpu_seconds=time.process_time() - self._cpu_origin,
        )
