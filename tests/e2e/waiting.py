"""Waiting for what a cluster does in its own time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def wait_for(what: str, look: Callable[[], Found], *, seconds: float = 180.0) -> Found:
    """The first true value of `look`, tried twice a second; fails the test if none comes."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}, in vain"
        time.sleep(0.5)
