"""How fast a job goes: what it did over the last minute or so."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

WINDOW_SECONDS = 60.0
# Closer samples take the place of one another.
_SECONDS_BETWEEN_SAMPLES = 1.0


@dataclass(frozen=True)
class Rates:
    """By second."""

    evaluations: float = 0.0
    packets: float = 0.0


@dataclass(frozen=True)
class _Sample:
    seconds: float
    evaluations: int
    packets: int


class RateMeter:
    """Takes running totals and the time of a clock that never goes back, in seconds."""

    def __init__(self, seconds: float, evaluations: int = 0, packets: int = 0) -> None:
        self._samples = deque([_Sample(seconds, evaluations, packets)])
        self._workers: dict[str, float] = {}

    def reached(self, seconds: float, evaluations: int, packets: int) -> None:
        """The totals at a time. What was in an abandoned step counts no more: totals may fall."""
        sample = _Sample(seconds, evaluations, packets)
        before = self._samples[-2].seconds if len(self._samples) > 1 else None
        if before is not None and seconds - before < _SECONDS_BETWEEN_SAMPLES:
            self._samples[-1] = sample
        else:
            self._samples.append(sample)
        while len(self._samples) > 2 and seconds - self._samples[1].seconds >= WINDOW_SECONDS:
            self._samples.popleft()

    def worked(self, seconds: float, workers: frozenset[str]) -> None:
        """These workers returned something."""
        self._workers.update(dict.fromkeys(workers, seconds))

    def rates(self, seconds: float) -> Rates:
        """What was done in the window before `seconds`."""
        first, last = self._samples[0], self._samples[-1]
        took = max(seconds, last.seconds) - first.seconds
        if took <= 0:
            return Rates()
        return Rates(
            evaluations=max(last.evaluations - first.evaluations, 0) / took,
            packets=max(last.packets - first.packets, 0) / took,
        )

    def workers(self, seconds: float) -> int:
        """How many workers returned something in the window before `seconds`."""
        self._workers = {
            worker: at for worker, at in self._workers.items() if seconds - at <= WINDOW_SECONDS
        }
        return len(self._workers)
