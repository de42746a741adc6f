"""What a worker has to say, for an event loop that writes a stream."""

from __future__ import annotations

import asyncio

from remy_farm.v1 import worker_service_pb2
from remy_workers.outbox import Outbox


class StreamOutbox(Outbox):
    """An outbox of the running event loop, to be iterated over there."""

    def __init__(self) -> None:
        super().__init__()
        self._news = asyncio.Event()

    def put(self, message: worker_service_pb2.WorkRequest) -> None:
        super().put(message)
        self._news.set()

    def put_if_quiet(self, message: worker_service_pb2.WorkRequest) -> None:
        super().put_if_quiet(message)
        self._news.set()

    def close(self) -> None:
        super().close()
        self._news.set()

    def drain(self) -> list[worker_service_pb2.WorkRequest]:
        left = super().drain()
        self._news.set()
        return left

    def __aiter__(self) -> StreamOutbox:
        return self

    async def __anext__(self) -> worker_service_pb2.WorkRequest:
        while not self._messages:
            if self._closed:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._messages.popleft()
