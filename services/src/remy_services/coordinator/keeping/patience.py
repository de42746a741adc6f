"""Calls of a store that is not available now and may be later."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from remy_services.stores import StoreUnavailable

_Result = TypeVar("_Result")

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0


async def patiently(
    call: Callable[[], Awaitable[_Result]], *, on_trouble: Callable[[str], None]
) -> _Result:
    """The result of `call`, which is repeated for as long as it raises StoreUnavailable, after
    pauses that grow. `on_trouble` is told why, each time."""
    pause_seconds = _FIRST_PAUSE_SECONDS
    while True:
        try:
            return await call()
        except StoreUnavailable as error:
            on_trouble(str(error))
        await asyncio.sleep(pause_seconds)
        pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)
