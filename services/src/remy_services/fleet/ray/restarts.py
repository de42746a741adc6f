"""When a driver that has ended is started again."""

from __future__ import annotations

_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 30.0
_FACTOR = 2.0
# A driver that was of use for so long did not fail because of how it was started.
_GOOD_SECONDS = 60.0


class Restarts:
    """Waits longer from failure to failure."""

    def __init__(self) -> None:
        self._next = _FIRST_SECONDS

    def wait_seconds(self, lived_seconds: float, *, had_workers: bool) -> float:
        """How long to wait after a driver that lived for so long, with workers or without."""
        if had_workers or lived_seconds >= _GOOD_SECONDS:
            self._next = _FIRST_SECONDS
        wait, self._next = self._next, min(self._next * _FACTOR, _LONGEST_SECONDS)
        return wait
