"""Waiting for what will be so: every test that polls does it here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

#: Long enough for a machine that is busy with something else.
DEADLINE_SECONDS = 180.0


def wait_until(
    look: Callable[[], Found | None],
    what: str = "what a test waits for",
    *,
    seconds: float = DEADLINE_SECONDS,
    every_seconds: float = 0.02,
) -> Found:
    """The first true value of `look`; fails the test if none comes within so many seconds."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}, in vain"
        time.sleep(every_seconds)
    return found


async def wait_in_loop(
    look: Callable[[], Found | None],
    what: str = "what a test waits for",
    *,
    seconds: float = DEADLINE_SECONDS,
    every_seconds: float = 0.01,
) -> Found:
    """The same in an event loop, which goes on meanwhile."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited {seconds:g} s for {what}, in vain"
        await asyncio.sleep(every_seconds)
    return found
