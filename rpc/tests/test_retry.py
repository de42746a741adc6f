"""When a call is repeated, and when that is given up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_rpc.retry import RetryPolicy

JITTER = st.floats(0, 1, exclude_max=True)


class _Away(Exception):
    """The coordinator is away, and wants to be asked again later."""

    def __init__(self, hint_seconds: float | None = None) -> None:
        super().__init__("away")
        self.hint_seconds = hint_seconds


def _hint(error: BaseException) -> float | None:
    assert isinstance(error, _Away)
    return error.hint_seconds


def _is_away(error: BaseException) -> bool:
    return isinstance(error, _Away)


@given(st.integers(1, 10_000), JITTER)
def test_a_wait_is_between_half_of_its_bound_and_the_bound(failures: int, jitter: float) -> None:
    policy = RetryPolicy(first_seconds=0.2, factor=2.0, most_seconds=5.0)
    bound = min(0.2 * 2.0 ** min(failures - 1, 100), 5.0)
    delay = policy.wait_seconds(failures, jitter=jitter)
    assert bound / 2 <= delay <= bound


@given(st.integers(1, 100), JITTER, st.floats(0, 60))
def test_the_coordinators_hint_is_never_undercut(failures: int, jitter: float, hint: float) -> None:
    policy = RetryPolicy()
    delay = policy.wait_seconds(failures, jitter=jitter, hint_seconds=hint)
    usual = policy.wait_seconds(failures, jitter=jitter)
    assert max(hint, usual) <= delay <= max(hint * 1.2, usual)


@given(st.floats(0, 0.02))
def test_patience_ends(seconds: float) -> None:
    """Whatever the waits, their sum stays within what there was patience for."""
    waits: list[float] = []
    policy = RetryPolicy(first_seconds=0.001, most_seconds=0.004)

    def fail() -> None:
        raise _Away

    with pytest.raises(_Away):
        policy.retrying(_is_away, timeout_seconds=seconds, sleep=waits.append)(fail)
    assert all(wait <= seconds for wait in waits)


def test_a_hint_beyond_patience_ends_it_at_once() -> None:
    attempts = []

    def fail() -> None:
        attempts.append(1)
        raise _Away(11.0)

    with pytest.raises(_Away):
        RetryPolicy().retrying(_is_away, timeout_seconds=10.0, hint_seconds=_hint)(fail)
    assert len(attempts) == 1


def test_what_does_not_pass_is_not_tried_again() -> None:
    with pytest.raises(ZeroDivisionError):
        RetryPolicy().retrying(_is_away)(lambda: 1 / 0)


def test_waits_grow_to_a_bound_differ_and_begin_anew() -> None:
    policy = RetryPolicy(first_seconds=0.25, factor=2.0, most_seconds=15.0)
    waits: list[float] = []

    def wait_of_a_dozen() -> list[float]:
        waits.clear()
        for attempt in policy.retrying(_is_away, sleep=waits.append):
            with attempt:
                if len(waits) < 12:
                    raise _Away
        return list(waits)

    one, other = wait_of_a_dozen(), wait_of_a_dozen()
    assert 0.125 <= one[0] <= 0.25
    assert 7.5 <= one[-1] <= 15.0
    assert max(one) <= 15.0
    assert one != other

    waits.clear()
    for attempt in policy.retrying(_is_away, sleep=waits.append):
        with attempt:
            if len(waits) == 11:
                attempt.retry_state.attempt_number = 1
            if len(waits) < 12:
                raise _Away
    assert waits[-1] <= 0.25
