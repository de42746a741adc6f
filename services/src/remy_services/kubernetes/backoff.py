"""When to try again what was refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_FIRST_SECONDS: Final = 2.0
_MOST_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Refusal:
    """Something was refused so many times in a row, the last time for this reason."""

    why: str
    times: int
    until: float

    @classmethod
    def after(cls, before: Refusal | None, why: str, now: float) -> Refusal:
        """The refusal that follows `before`, at the time `now` in seconds."""
        times = 1 if before is None else before.times + 1
        wait = min(_MOST_SECONDS, _FIRST_SECONDS * 2.0 ** (times - 1))
        return cls(why, times, now + wait)
