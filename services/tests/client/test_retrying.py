import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_services.client.connection import Backoff, Patience

JITTER = st.floats(0, 1, exclude_max=True)


@given(st.integers(1, 10_000), JITTER)
def test_a_wait_is_between_half_of_its_bound_and_the_bound(failures: int, jitter: float) -> None:
    backoff = Backoff(first_seconds=0.2, factor=2.0, most_seconds=5.0)
    bound = min(0.2 * 2.0 ** min(failures - 1, 100), 5.0)
    delay = backoff.delay_seconds(failures, jitter=jitter, hint_seconds=None)
    assert bound / 2 <= delay <= bound


@given(st.integers(1, 100), JITTER, st.floats(0, 60))
def test_the_coordinators_hint_is_never_undercut(failures: int, jitter: float, hint: float) -> None:
    backoff = Backoff()
    delay = backoff.delay_seconds(failures, jitter=jitter, hint_seconds=hint)
    usual = backoff.delay_seconds(failures, jitter=jitter, hint_seconds=None)
    assert max(hint, usual) <= delay <= max(hint * 1.2, usual)


@given(st.floats(0, 100), JITTER)
def test_patience_ends(seconds: float, jitter: float) -> None:
    """Whatever the waits, their sum stays within what there was patience for."""
    patience = Patience(seconds, began_seconds=1000.0, backoff=Backoff())
    now = 1000.0
    for _ in range(10_000):
        delay = patience.wait_seconds(now_seconds=now, jitter=jitter)
        if delay is None:
            break
        now += delay
    else:
        pytest.fail("never gives up")
    assert now <= 1000.0 + seconds


def test_a_hint_beyond_patience_ends_it_at_once() -> None:
    patience = Patience(10.0, began_seconds=0.0, backoff=Backoff())
    assert patience.wait_seconds(now_seconds=0.0, jitter=0.0, hint_seconds=11.0) is None
    assert patience.failures == 1
