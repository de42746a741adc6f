"""The driver's process, started again as often as it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Sequence

import structlog

from remy_services.fleet.ray.restarts import Restarts

# A driver gives its actors some seconds to end what they have begun.
_ENDING_SECONDS = 9.0
_SECONDS_BETWEEN_COUNTS = 0.2

_log = structlog.get_logger()


class DriverProcess:
    """Runs a command until it is closed."""

    def __init__(self, command: Sequence[str], count_workers: Callable[[], int]) -> None:
        """`count_workers` says how many work through the driver now.

        The environment is this process's, as it is now.
        """
        self._command = command
        self._count_workers = count_workers
        self._environment = {"RAY_USAGE_STATS_ENABLED": "0", **os.environ}
        self._process: asyncio.subprocess.Process | None = None
        self._running: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Of the process, while there is one."""
        return None if self._process is None else self._process.pid

    def begin(self) -> None:
        """Starts it, in the running event loop."""
        self._running = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Ends it in order."""
        if self._running is None:
            return
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        restarts = Restarts()
        while True:
            began = time.monotonic()
            had_workers = False
            # It ends with its standard input, hence with this process however that ends.
            process = self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                env=self._environment,
            )
            ended = asyncio.create_task(process.wait())
            try:
                while not ended.done():
                    await asyncio.wait([ended], timeout=_SECONDS_BETWEEN_COUNTS)
                    had_workers = had_workers or self._count_workers() > 0
            finally:
                await self._end(process, ended)
                self._process = None
            wait = restarts.wait_seconds(time.monotonic() - began, had_workers=had_workers)
            _log.warning(
                "the driver of Ray has ended", status=process.returncode, next_in_seconds=wait
            )
            await asyncio.sleep(wait)

    async def _end(self, process: asyncio.subprocess.Process, ended: asyncio.Task[int]) -> None:
        if not ended.done():
            assert process.stdin is not None
            process.stdin.close()
            await asyncio.wait([ended], timeout=_ENDING_SECONDS)
        if not ended.done():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await ended
