"""A sign of life, from a thread that does nothing else."""

from __future__ import annotations

import threading
from typing import Any

from remy_workers.desk import Desk

_BEFORE_IT_IS_KNOWN_SECONDS = 1.0


class Heartbeat:
    """Beats for as long as the process lives."""

    def __init__(self, desk: Desk[Any]) -> None:
        self._desk = desk
        #: How often; the coordinator says so.
        self.seconds = _BEFORE_IT_IS_KNOWN_SECONDS
        self._never = threading.Event()

    def start(self) -> None:
        """Begins to beat."""
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def _beat(self) -> None:
        while not self._never.wait(self.seconds):
            self._desk.beat()
