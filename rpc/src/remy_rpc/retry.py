"""Retry policy: when to repeat a call that met a coordinator that was away."""

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
    """Exponential back-off with a random part, so that those which failed together return apart.

    Times are seconds. The wait after failure n is drawn from the upper half of
    min(first * factor^(n-1), most).
    """

    first_seconds: float = 0.2
    factor: float = 1.6
    most_seconds: float = 5.0

    def wait_seconds(
        self, failures: int, *, jitter: float, hint_seconds: float | None = None
    ) -> float:
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
        """Attempts while `is_retryable` says of their failures that another may succeed.

        Ends, with the last failure, when the next attempt would begin later than `timeout_seconds`
        after the first one, or when `stop` says so. `hint_seconds` is what a failure asks to wait
        for. Setting `attempt.retry_state.attempt_number = 1` has the waits begin anew.
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
    """What the attempt has failed with."""
    failure = None if state.outcome is None else state.outcome.exception()
    assert failure is not None
    return failure
