"""Metrics over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from prometheus_client import CollectorRegistry, start_http_server

# A loop that is held up for longer fails the scrape, which is what somebody should see.
_LOOP_SECONDS = 5.0

_Result = TypeVar("_Result")


class MetricsServer:
    """Answers GET /metrics from a thread of its own until it is closed."""

    def __init__(self, registry: CollectorRegistry, host: str, port: int) -> None:
        """Listens at once; port 0 takes any that is free. Raises OSError where it cannot."""
        self._server, self._thread = start_http_server(port, host, registry)
        #: The port that it listens on.
        self.port = int(self._server.server_address[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Listens no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def in_loop(
    loop: asyncio.AbstractEventLoop, function: Callable[[], _Result]
) -> Callable[[], _Result]:
    """Has another thread call what belongs to an event loop, between two of its callbacks.

    What is returned raises TimeoutError if the loop is held up, and RuntimeError if it has ended.
    """

    def call() -> _Result:
        reading = _call(function)
        try:
            return asyncio.run_coroutine_threadsafe(reading, loop).result(_LOOP_SECONDS)
        except RuntimeError:
            reading.close()
            raise

    return call


async def _call(function: Callable[[], _Result]) -> _Result:
    return function()
