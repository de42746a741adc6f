"""Tasks that run for longer than they should, so that idle workers can do them too."""

from __future__ import annotations

import heapq

from remy_services.fleet.board.records import Lease, Task


class Hedges:
    """Copies of tasks, by the time from which another copy is worth its cost."""

    def __init__(self) -> None:
        self._later: list[tuple[float, int, Lease]] = []
        self._due: dict[Task, None] = {}

    def watch(self, lease: Lease, due_at: float) -> None:
        """A copy was given out."""
        heapq.heappush(self._later, (due_at, lease.lease_id, lease))

    def collect(self, now: float) -> None:
        """Finds the copies that are late by now."""
        while self._later and self._later[0][0] <= now:
            lease = heapq.heappop(self._later)[2]
            if lease.active:
                self._due[lease.task] = None

    def due(self) -> list[Task]:
        """The tasks with a copy that is late, those first that have been late for longest."""
        self._due = {task: None for task in self._due if task.active}
        return list(self._due)

    def hedged(self, task: Task) -> None:
        """Another copy was given out, which will be late in its own time."""
        self._due.pop(task, None)
