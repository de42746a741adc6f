"""Where the time of steps goes."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from enum import StrEnum

from remy_services.fleet.board import BoardSnapshot


class Phase(StrEnum):
    """What a step is made of."""

    #: Tasks wait for a worker.
    WAITING = "waiting"
    #: Tasks and results are under way, or a task waits on a worker for its turn.
    TRANSFER = "transfer"
    #: Processors simulate.
    SIMULATION = "simulation"
    #: The store makes a commit durable, or is read.
    STORE = "store"
    #: Designers decide what to ask for next.
    SEARCH = "search"


class StepTimes:
    """Seconds by phase since the process began; may be used from any thread.

    Waiting, transfer and simulation are sums over tasks, many of which run at once; store and
    search are sums over the coordinator's own work.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds = dict.fromkeys(Phase, 0.0)

    def add(self, phase: Phase, seconds: float) -> None:
        """So much more was spent; a clock that was set back counts for nothing."""
        with self._lock:
            self._seconds[phase] += max(seconds, 0.0)

    def reach(self, totals: Mapping[Phase, float]) -> None:
        """So much was spent in all; less than before counts for nothing."""
        with self._lock:
            for phase, seconds in totals.items():
                self._seconds[phase] = max(self._seconds[phase], seconds)

    def seconds(self) -> dict[str, float]:
        """By name of the phase."""
        with self._lock:
            return {str(phase): seconds for phase, seconds in self._seconds.items()}


def of_tasks(snapshot: BoardSnapshot) -> dict[Phase, float]:
    """What a board knows of the time of its tasks."""
    counts = snapshot.counts
    return {
        Phase.WAITING: counts.queue_seconds,
        Phase.TRANSFER: counts.task_duration_seconds - counts.cpu_seconds,
    }
