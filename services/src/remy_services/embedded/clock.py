"""How long a design has run, over all of its runs."""

from __future__ import annotations

import time

from remy_services.designer.clock_budgets import Elapsed


class Clock:
    """Goes on from what earlier runs have used; CPU time is that of this process."""

    def __init__(self, before: Elapsed) -> None:
        self._wall_origin = time.monotonic() - before.wall_seconds
        self._cpu_origin = time.process_time() - before.cpu_seconds

    def elapsed(self) -> Elapsed:
        """Time used up to now."""
        return Elapsed(
            wall_seconds=time.monotonic() - self._wall_origin,
            cpu_seconds=time.process_time() - self._cpu_origin,
        )
