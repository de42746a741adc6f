"""Waiting for what will be so."""

import time
from collections.abc import Callable

DEADLINE_SECONDS = 120


def wait_until(holds: Callable[[], bool]) -> None:
    """Returns when it holds; fails if it never does."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
