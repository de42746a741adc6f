"""The retry policy of calls to a coordinator that is temporarily unavailable."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tenacity
from tenacity.stop import stop_base


def _no_hint(_: BaseException) -> float | None:
    return None


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential back-off with jitter, so that clients that fail together retry apart.

    Times are in seconds. The wait after failure n is drawn from the upper half of the interval from
    0 to min(first * factor^(n-1), most).
    """

    first_seconds: float = 0.2
    factor: float = 1.6
    most_seconds: float = 5.0

    def wait_seconds(
        self, failures: int, *, jitter: float, hint_seconds: float | None = None
    ) -> float:
        """The wait after a number of consecutive failures, at least 1.

        `jitter` is a random number in [0, 1). If the coordinator gave a hint, the wait is at least
        `hint_seconds`, plus up to a fifth.
        """
        exponent = min(failures - 1, 64)
        usual = min(self.first_seconds * self.factor**exponent, self.most_seconds)
        spread = usual * (0.5 + 0.5 * jitter)
        if hint_seconds is None:
            return spread
        return max(spread, hint_seconds * (1.0 + 0.2 * jitter))

    def retrying(
        self,
        is_retryable: Callable[[BaseException], bool],
        *,
        timeout_seconds: float = math.inf,
        hint_seconds: Callable[[BaseException], float | None] = _no_hint,
        stop: stop_base = tenacity.stop_never,
        before_sleep: Callable[[tenacity.RetryCallState], None] | None = None,
        sleep: Callable[[float], Any] = time.sleep,
    ) -> tenacity.Retrying:
        """Yields attempts until one succeeds or fails with an error that is not retryable.

        Raises the last failure if the next attempt would begin more than `timeout_seconds` after
        the first, or if `stop` ends the attempts. `hint_seconds` extracts the coordinator's hint
        from a failure. Set `attempt.retry_state.attempt_number = 1` to reset the back-off.
        """

        def wait(state: tenacity.RetryCallState) -> float:
            return self.wait_seconds(
                state.attempt_number,
                jitter=random.random(),
                hint_seconds=hint_seconds(failure_of(state)),
            )

        return tenacity.Retrying(
            retry=tenacity.retry_if_exception(is_retryable),
            wait=wait,
            stop=tenacity.stop_any(stop, tenacity.stop_before_delay(timeout_seconds)),
            before_sleep=before_sleep,
            sleep=sleep,
            reraise=True,
        )


def failure_of(state: tenacity.RetryCallState) -> BaseException:
    """The exception of a failed attempt."""
    failure = None if state.outcome is None else state.outcome.exception()
    assert failure is not None
    return failure
