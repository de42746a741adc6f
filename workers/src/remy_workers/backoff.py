"""How long to wait before calling a coordinator again that could not be reached."""

from __future__ import annotations

import random

_FIRST_SECONDS = 0.25
_LONGEST_SECONDS = 15.0
_FACTOR = 2.0


class Backoff:
    """Doubles from call to call, and is jittered: a coordinator that comes back is not stormed."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._next = _FIRST_SECONDS

    def seconds(self) -> float:
        """The next wait: between half of the present length and all of it."""
        length, self._next = self._next, min(self._next * _FACTOR, _LONGEST_SECONDS)
        return length * self._chance.uniform(0.5, 1.0)

    def reset(self) -> None:
        """A call has succeeded."""
        self._next = _FIRST_SECONDS
