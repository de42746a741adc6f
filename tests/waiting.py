"""Polls until a condition is true. Every test that polls uses these functions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")

#: Long enough for a busy machine.
TIMEOUT_SECONDS = 180.0


def wait_until(
    condition: Callable[[], Value | None],
    what: str = "a condition",
    *,
    seconds: float = TIMEOUT_SECONDS,
    every_seconds: float = 0.02,
) -> Value:
    """Calls `condition` until its value is true, and returns that value.

    The test fails if that takes longer than `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"timed out after {seconds:g} s waiting for {what}"
        time.sleep(every_seconds)
    return value


async def wait_in_loop(
    condition: Callable[[], Value | None],
    what: str = "a condition",
    *,
    seconds: float = TIMEOUT_SECONDS,
    every_seconds: float = 0.01,
) -> Value:
    """Waits like `wait_until`, but lets the event loop run in between."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"timed out after {seconds:g} s waiting for {what}"
        await asyncio.sleep(every_seconds)
    return value
