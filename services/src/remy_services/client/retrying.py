"""When to repeat a request that met a coordinator that was away. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """Waits that grow, with a random part so that clients which failed together return apart."""

    first_seconds: float = 0.2
    factor: float = 1.6
    most_seconds: float = 5.0

    def delay_seconds(self, failures: int, *, jitter: float, hint_seconds: float | None) -> float:
        """How long to wait after so many failures in a row, at least 1.

        `jitter` is random in [0, 1). What the coordinator asked for in `hint_seconds` is waited for
        in full, and up to a fifth longer.
        """
        exponent = min(failures - 1, 64)
        usual = min(self.first_seconds * self.factor**exponent, self.most_seconds)
        spread = usual * (0.5 + 0.5 * jitter)
        if hint_seconds is None:
            return spread
        return max(spread, hint_seconds * (1.0 + 0.2 * jitter))


class Patience:
    """One request's attempts, as long as there is time for another."""

    def __init__(self, seconds: float, *, began_seconds: float, backoff: Backoff) -> None:
        self._ends_seconds = began_seconds + seconds
        self._backoff = backoff
        self.failures = 0

    def wait_seconds(
        self, *, now_seconds: float, jitter: float, hint_seconds: float | None = None
    ) -> float | None:
        """Another attempt failed: how long to wait for the next; None if it would come too late."""
        self.failures += 1
        delay = self._backoff.delay_seconds(self.failures, jitter=jitter, hint_seconds=hint_seconds)
        return None if now_seconds + delay > self._ends_seconds else delay
