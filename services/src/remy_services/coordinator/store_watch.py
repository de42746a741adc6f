"""Whether the store can be written to at present."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import structlog

from remy_services.coordinator.threads import Threads
from remy_services.stores import CheckpointStore, StoreError

_log = structlog.get_logger()


class StoreWatch:
    """Asks now and then, so that whoever wants to know need not wait for an answer."""

    def __init__(
        self,
        store: CheckpointStore,
        threads: Threads,
        every_seconds: float,
        on_change: Callable[[str], Awaitable[None]],
    ) -> None:
        """`on_change` is told the trouble that has come, or "" when it is over."""
        self._store = store
        self._threads = threads
        self._every_seconds = every_seconds
        self._on_change = on_change
        #: One sentence; empty if there is none.
        self.trouble = ""
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Watches until `close`."""
        self._task = asyncio.create_task(self._watch())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _watch(self) -> None:
        while True:
            trouble = await self._look()
            if bool(trouble) != bool(self.trouble):
                if trouble:
                    _log.warning("the store is in trouble", why=trouble)
                else:
                    _log.info("the store is well again")
                await self._on_change(trouble)
            self.trouble = trouble
            await asyncio.sleep(self._every_seconds)

    async def _look(self) -> str:
        try:
            await self._threads.store(self._store.check)
        except StoreError as error:
            return str(error)
        except Exception as error:
            _log.error("the store could not be checked", exc_info=error)
            return f"the store could not be checked ({type(error).__name__})"
        return ""
