"""How long a job has run, over all of its runs."""

from __future__ import annotations

import time

from remy_services.designer.clock_budgets import Elapsed


class Stopwatch:
    """Goes on from what earlier runs have used; CPU time is that of whoever evaluated."""

    def __init__(self, before: Elapsed) -> None:
        self._wall_origin = time.monotonic() - before.wall_seconds
        self._cpu_seconds = before.cpu_seconds

    def add_cpu(self, seconds: float) -> None:
        """An evaluation took so much CPU time."""
        self._cpu_seconds += seconds

    def elapsed(self) -> Elapsed:
        """Time used up to now."""
        return Elapsed(
            wall_seconds=time.monotonic() - self._wall_origin, cpu_seconds=self._cpu_seconds
        )
