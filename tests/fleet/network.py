"""TCP proxies between workers and their coordinator, which fail on request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

_CHUNK_BYTES = 1 << 16

_T = TypeVar("_T")


class Network:
    """Runs any number of proxies in an event loop of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[asyncio.Server] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def call(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Runs a coroutine in the event loop and returns its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def link(self, port: int) -> Link:
        """Starts a proxy to a port of this machine."""
        link = Link(self, port)
        self._servers.append(self.call(link.open()))
        return link

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        current = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not current]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class Link:
    """A proxy between one worker and the coordinator."""

    def __init__(self, network: Network, target: int) -> None:
        self._network = network
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self.port = 0

    @property
    def is_used(self) -> bool:
        """Whether a worker is connected."""
        return bool(self._writers)

    def cut(self) -> None:
        """Aborts all connections; new ones are accepted."""
        self._network.call(self._cut())

    def stall(self) -> None:
        """Stops forwarding data, without closing any connection."""
        self._network.call(self._set_flowing(False))

    def resume(self) -> None:
        """Forwards data again, including what arrived during the stall."""
        self._network.call(self._set_flowing(True))

    async def open(self) -> asyncio.Server:
        """Starts to listen."""
        self._flowing.set()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            target_reader, target_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        connection = {writer, target_writer}
        self._writers |= connection
        try:
            directions = [
                asyncio.create_task(self._forward(reader, target_writer)),
                asyncio.create_task(self._forward(target_reader, writer)),
            ]
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
        finally:
            self._writers -= connection
            for each in connection:
                each.transport.abort()

    async def _forward(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(_CHUNK_BYTES):
            await self._flowing.wait()
            sink.write(data)
            await sink.drain()

    async def _cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _set_flowing(self, flowing: bool) -> None:
        if flowing:
            self._flowing.set()
        else:
            self._flowing.clear()
