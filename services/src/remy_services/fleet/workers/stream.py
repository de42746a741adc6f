"""The coordinator's end of one worker's stream."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

import grpc

from remy_farm.v1 import worker_service_pb2
from remy_services.fleet.board import WorkerFacts
from remy_services.fleet.workers.task_messages import TablesOfStream

Context = grpc.aio.ServicerContext[worker_service_pb2.WorkRequest, worker_service_pb2.WorkResponse]


@dataclass
class Traffic:
    """Bytes of messages, without what gRPC adds."""

    task_bytes: int = 0
    tables_bytes: int = 0
    result_bytes: int = 0


@dataclass(eq=False)
class WorkerStream:
    """What is to be written, and what is known of the worker at the other end."""

    facts: WorkerFacts
    exit_when_idle: bool
    #: The end of the stream is not the end of the process that simulates.
    watched: bool
    traffic: Traffic
    tables: TablesOfStream = field(default_factory=TablesOfStream)
    #: Since when there has been nothing for the worker to do; None: there is something.
    idle_since: float | None = None
    told_idle: bool = False
    #: How it left, as far as it has said.
    goodbye: str = ""
    #: Whoever watches over the process that simulates says that it has ended.
    process_ended: bool = False
    #: Why the coordinator ends the stream.
    dismissal: Exception | None = None
    _outbox: deque[worker_service_pb2.WorkResponse] = field(default_factory=deque)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _ended: bool = False

    def send(self, message: worker_service_pb2.WorkResponse) -> None:
        """Has a message written as soon as the worker takes it."""
        self._outbox.append(message)
        self._changed.set()

    def end(self, dismissal: Exception | None = None) -> None:
        """Ends the stream: at once with an error, or without one when all has been written."""
        self._ended = True
        self.dismissal = self.dismissal or dismissal
        self._changed.set()

    async def write_until_ended(self, context: Context) -> None:
        """Writes what there is to write. Raises what the stream was ended with."""
        while True:
            while self._outbox and self.dismissal is None:
                await context.write(self._outbox.popleft())
            if self.dismissal is not None:
                raise self.dismissal
            if self._ended:
                return
            self._changed.clear()
            await self._changed.wait()
