"""A network that fails on request: a TCP proxy between one worker and its coordinator."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

_CHUNK_BYTES = 1 << 16

_T = TypeVar("_T")


class Network:
    """An event loop for any number of links."""

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
        """What a coroutine of the event loop returns."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def link(self, port: int) -> Link:
        """A new way to a port of this machine."""
        link = Link(self, port)
        self._servers.append(self.call(link.open()))
        return link

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not mine]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


class Link:
    """One worker's way to the coordinator."""

    def __init__(self, network: Network, target: int) -> None:
        self._network = network
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self.port = 0

    @property
    def is_used(self) -> bool:
        """Whether somebody is connected."""
        return bool(self._writers)

    def cut(self) -> None:
        """Breaks all connections; new ones may be made."""
        self._network.call(self._cut())

    def stall(self) -> None:
        """Nothing goes through any more, and nobody is told."""
        self._network.call(self._set_flowing(False))

    def resume(self) -> None:
        """What waited goes on its way."""
        self._network.call(self._set_flowing(True))

    async def open(self) -> asyncio.Server:
        """Begins to listen."""
        self._flowing.set()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        mine = {writer, back}
        self._writers |= mine
        try:
            ways = [
                asyncio.create_task(self._carry(reader, back)),
                asyncio.create_task(self._carry(there, writer)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        finally:
            self._writers -= mine
            for each in mine:
                each.transport.abort()

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
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
