"""Where the time of steps goes."""

from __future__ import annotations

import threading
from enum import StrEnum

from remy_services.telemetry.catalogue import server
from remy_services.telemetry.instruments import Instruments


class Phase(StrEnum):
    """What a step is made of."""

    #: Tasks wait for a worker.
    WAITING = "waiting"
    #: Tasks and results are under way.
    TRANSFER = "transfer"
    #: Workers simulate.
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

    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments
        self._lock = threading.Lock()
        self._seconds = dict.fromkeys(Phase, 0.0)
        for phase in Phase:
            instruments.prepare(server.STEP_PHASE_SECONDS, phase)

    def add(self, phase: Phase, seconds: float) -> None:
        """So much more was spent; a clock that was set back counts for nothing."""
        spent = max(seconds, 0.0)
        self._instruments.count(server.STEP_PHASE_SECONDS, phase, by=spent)
        with self._lock:
            self._seconds[phase] += spent

    def seconds(self) -> dict[str, float]:
        """By name of the phase."""
        with self._lock:
            return {str(phase): seconds for phase, seconds in self._seconds.items()}
