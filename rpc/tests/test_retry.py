"""When a call is retried, and when retries end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_rpc.retry import RetryPolicy

JITTER = st.floats(0, 1, exclude_max=True)


class _Unavailable(Exception):
    """The coordinator is unavailable, with a hint for the next attempt."""

    def __init__(self, hint_seconds: float | None = None) -> None:
        super().__init__("away")
        self.hint_seconds = hint_seconds


def _hint(error: BaseException) -> float | None:
    assert isinstance(error, _Unavailable)
    return error.hint_seconds


def _is_unavailable(error: BaseException) -> bool:
    return isinstance(error, _Unavailable)


@given(st.integers(1, 10_000), JITTER)
def test_wait_is_between_half_its_bound_and_the_bound(failures: int, jitter: float) -> None:
    policy = RetryPolicy(first_seconds=0.2, factor=2.0, most_seconds=5.0)
    bound = min(0.2 * 2.0 ** min(failures - 1, 100), 5.0)
    delay = policy.wait_seconds(failures, jitter=jitter)
    assert bound / 2 <= delay <= bound


@given(st.integers(1, 100), JITTER, st.floats(0, 60))
def test_wait_is_at_least_the_coordinators_hint(failures: int, jitter: float, hint: float) -> None:
    policy = RetryPolicy()
    delay = policy.wait_seconds(failures, jitter=jitter, hint_seconds=hint)
    usual = policy.wait_seconds(failures, jitter=jitter)
    assert max(hint, usual) <= delay <= max(hint * 1.2, usual)


@given(st.floats(0, 0.02))
def test_retries_end_at_the_timeout(seconds: float) -> None:
    """The sum of the waits stays within the timeout."""
    waits: list[float] = []
    policy = RetryPolicy(first_seconds=0.001, most_seconds=0.004)

    def fail() -> None:
        raise _Unavailable

    with pytest.raises(_Unavailable):
        policy.retrying(_is_unavailable, timeout_seconds=seconds, sleep=waits.append)(fail)
    assert all(wait <= seconds for wait in waits)


def test_hint_beyond_the_timeout_ends_retries_at_once() -> None:
    attempts = []

    def fail() -> None:
        attempts.append(1)
        raise _Unavailable(11.0)

    with pytest.raises(_Unavailable):
        RetryPolicy().retrying(_is_unavailable, timeout_seconds=10.0, hint_seconds=_hint)(fail)
    assert len(attempts) == 1


def test_other_errors_are_not_retried() -> None:
    with pytest.raises(ZeroDivisionError):
        RetryPolicy().retrying(_is_unavailable)(lambda: 1 / 0)


def test_waits_grow_to_a_bound_vary_and_can_be_reset() -> None:
    policy = RetryPolicy(first_seconds=0.25, factor=2.0, most_seconds=15.0)
    waits: list[float] = []

    def wait_of_a_dozen() -> list[float]:
        waits.clear()
        for attempt in policy.retrying(_is_unavailable, sleep=waits.append):
            with attempt:
                if len(waits) < 12:
                    raise _Unavailable
        return list(waits)

    one, other = wait_of_a_dozen(), wait_of_a_dozen()
    assert 0.125 <= one[0] <= 0.25
    assert 7.5 <= one[-1] <= 15.0
    assert max(one) <= 15.0
    assert one != other

    waits.clear()
    for attempt in policy.retrying(_is_unavailable, sleep=waits.append):
        with attempt:
            if len(waits) == 11:
                attempt.retry_state.attempt_number = 1
            if len(waits) < 12:
                raise _Unavailable
    assert waits[-1] <= 0.25
