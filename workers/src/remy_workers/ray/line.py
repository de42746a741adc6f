"""An actor's line to the coordinator: one call after the other, in the driver's event loop."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import grpc
import structlog

from remy_farm.v1 import worker_service_pb2, worker_service_pb2_grpc
from remy_workers.backoff import Backoff
from remy_workers.call import Call, Pulse
from remy_workers.connection import call_metadata
from remy_workers.desk import Desk
from remy_workers.ending import Ending
from remy_workers.exit_codes import ExitCode
from remy_workers.finality import FINAL
from remy_workers.ray.outbox import StreamOutbox
from remy_workers.ray.tables import StoredTables, TablesOfStream, TableStore
from remy_workers.settings import WorkerSettings
from remy_workers.telemetry.metrics import TaskEnd

# Tasks in reserve for each thread, so that none waits for the coordinator.
_RESERVE = 1

_log = structlog.get_logger()


class Refused(Exception):
    """The coordinator will not have this worker. One sentence."""

    def __init__(self, code: ExitCode, why: str) -> None:
        super().__init__(why)
        self.code = code


class _Unmeasured:
    """Nobody asks the driver; the coordinator counts what its workers do."""

    def connected(self) -> None:
        pass

    def disconnected(self) -> None:
        pass

    def task_dropped(self, end: TaskEnd) -> None:
        pass


_UNMEASURED = _Unmeasured()


class Line:
    """Calls for as long as it is not closed."""

    def __init__(
        self,
        settings: WorkerSettings,
        hello: worker_service_pb2.Hello,
        desk: Desk[StoredTables],
        store: TableStore,
        ending: Ending,
    ) -> None:
        """For the worker of `hello`."""
        self._settings = settings
        self._hello = hello
        self._desk = desk
        self._store = store
        self._ending = ending
        self._backoff = Backoff(random.SystemRandom())
        self._closed = asyncio.Event()

    async def run(self, channel: grpc.aio.Channel, pulse: Pulse) -> None:
        """Calls, again and again, until it is closed. Raises Refused and SettingsError."""
        while not self._closed.is_set():
            await self._call(channel, pulse)
            if self._closed.is_set():
                return
            try:
                await asyncio.wait_for(self._closed.wait(), self._backoff.seconds())
            except TimeoutError:
                continue

    def close(self) -> None:
        """Returns what is not done, and calls no more."""
        self._closed.set()
        self._desk.close()

    def break_off(self, last_word: worker_service_pb2.WorkRequest) -> None:
        """Says why nothing more will come, if somebody listens, and calls no more."""
        self._closed.set()
        self._desk.break_off(last_word)

    async def _call(self, channel: grpc.aio.Channel, pulse: Pulse) -> None:
        settings = self._settings
        call = Call(
            settings,
            self._desk,
            TablesOfStream(self._store),
            self._ending,
            pulse,
            _UNMEASURED,
        )
        outbox = StreamOutbox()
        outbox.put(worker_service_pb2.WorkRequest(hello=self._hello))
        # What is generated has no types.
        make_stub: Any = worker_service_pb2_grpc.WorkerServiceStub
        responses = make_stub(channel).Work(outbox, metadata=call_metadata(settings))
        self._desk.open(outbox, self._hello.threads * (1 + _RESERVE))
        try:
            async for response in responses:
                call.hear(response)
            why: str | None = "the coordinator ended the call"
        except grpc.aio.AioRpcError as error:
            why = error.details()
            code = FINAL.get(error.code())
            if code is not None:
                raise Refused(code, why or error.code().name) from error
        finally:
            self._desk.shut()
            responses.cancel()
            if call.was_welcome:
                self._backoff.reset()
        if not self._closed.is_set():
            _log.warning("not connected", worker_id=self._hello.worker_id, why=why)
