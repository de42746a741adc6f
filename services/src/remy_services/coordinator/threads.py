"""Threads for what would hold up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

# A store that hangs must not keep calls from being made that would find it well again.
_STORE_THREADS = 16
# Designers compute under Python's lock: more threads would not make them faster.
_COMPUTE_THREADS = 2


class Threads:
    """Where calls of the store wait, and designers compute; apart, so that neither delays the
    other."""

    def __init__(self) -> None:
        self._store = ThreadPoolExecutor(_STORE_THREADS, thread_name_prefix="store")
        self._compute = ThreadPoolExecutor(_COMPUTE_THREADS, thread_name_prefix="compute")

    async def store(
        self,
        call: Callable[_Parameters, _Result],
        *args: _Parameters.args,
        **kwargs: _Parameters.kwargs,
    ) -> _Result:
        """The result of a call of the store."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._store, lambda: call(*args, **kwargs))

    async def compute(
        self,
        call: Callable[_Parameters, _Result],
        *args: _Parameters.args,
        **kwargs: _Parameters.kwargs,
    ) -> _Result:
        """The result of a call that keeps a CPU busy."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._compute, lambda: call(*args, **kwargs))

    async def close(self) -> None:
        """Lets running calls end by themselves, and begins no more."""
        for pool in (self._store, self._compute):
            pool.shutdown(wait=False, cancel_futures=True)
