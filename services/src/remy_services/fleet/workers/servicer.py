"""The servicer of WorkerService: one stream for each worker, from its Hello to its end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import grpc
import structlog

from remy_farm.v1 import worker_service_pb2, worker_service_pb2_grpc
from remy_services.fleet.board import WorkerQuarantined
from remy_services.fleet.dispatch import Dispatcher
from remy_services.fleet.workers.greeting import SimulatorIdentity, Unwelcome, check_hello
from remy_services.fleet.workers.hearing import hear
from remy_services.fleet.workers.settings import WorkerFleetSettings
from remy_services.fleet.workers.stream import Context, Traffic, WorkerStream

_Requests = AsyncIterator[worker_service_pb2.WorkRequest]

_SHUTTING_DOWN = "the coordinator is shutting down"

_log = structlog.get_logger()


class WorkerServicer(worker_service_pb2_grpc.WorkerServiceServicer):
    """Who may call is decided before a call gets here."""

    def __init__(
        self,
        settings: WorkerFleetSettings,
        simulator: SimulatorIdentity,
        dispatcher: Dispatcher,
        traffic: Traffic,
    ) -> None:
        """What workers say goes to the dispatcher's board."""
        self._settings = settings
        self._simulator = simulator
        self._dispatcher = dispatcher
        self._traffic = traffic
        self._closed = False
        #: By the worker's name.
        self.streams: dict[str, WorkerStream] = {}

    def close(self) -> None:
        """Sends all workers away, to call again later."""
        self._closed = True
        for stream in self.streams.values():
            stream.end(Unwelcome(grpc.StatusCode.UNAVAILABLE, _SHUTTING_DOWN))

    async def Work(  # noqa: N802
        self, request_iterator: _Requests, context: Context
    ) -> None:
        try:
            stream = await self._welcome(request_iterator)
        except Unwelcome as problem:
            _log.warning("worker sent away", why=str(problem))
            await context.abort(problem.code, str(problem))
            return
        reading = asyncio.create_task(self._read(stream, request_iterator))
        try:
            await stream.write_until_ended(context)
        except Unwelcome as problem:
            await context.abort(problem.code, str(problem))
        finally:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading
            self._part(stream)

    async def _welcome(self, requests: _Requests) -> WorkerStream:
        """The first message decides. Raises Unwelcome."""
        if self._closed:
            raise Unwelcome(grpc.StatusCode.UNAVAILABLE, _SHUTTING_DOWN)
        hello = await self._hello(requests)
        facts = check_hello(hello, self._simulator)
        try:
            self._dispatcher.board.join(facts, self._dispatcher.now())
        except WorkerQuarantined as problem:
            raise Unwelcome(grpc.StatusCode.FAILED_PRECONDITION, str(problem)) from None
        former = self.streams.get(facts.worker_id)
        if former is not None:
            former.end(Unwelcome(grpc.StatusCode.ABORTED, "the worker has called again"))
        stream = WorkerStream(facts, hello.exit_when_idle, hello.watched, self._traffic)
        self.streams[facts.worker_id] = stream
        welcome = worker_service_pb2.Welcome(
            lease_seconds=self._settings.board.lease_seconds,
            heartbeat_seconds=self._settings.heartbeat_seconds,
        )
        stream.send(worker_service_pb2.WorkResponse(welcome=welcome))
        _log.info(
            "worker joined",
            worker_id=facts.worker_id,
            host=hello.host,
            threads=facts.threads,
            version=hello.version,
            job_id=facts.job_id,
        )
        return stream

    async def _hello(self, requests: _Requests) -> worker_service_pb2.Hello:
        try:
            async with asyncio.timeout(self._settings.hello_seconds):
                message = await anext(requests, None)
        except TimeoutError:
            message = None
        if message is None or message.WhichOneof("message") != "hello":
            raise Unwelcome(grpc.StatusCode.INVALID_ARGUMENT, "the first message must be Hello")
        return message.hello

    async def _read(self, stream: WorkerStream, requests: _Requests) -> None:
        """Hears the worker until it ends the stream, or it breaks."""
        try:
            async for message in requests:
                # A stream that another one has replaced speaks for nobody any more.
                if self.streams.get(stream.facts.worker_id) is stream:
                    hear(self._dispatcher.board, stream, message, self._dispatcher.now())
                    self._dispatcher.advance_soon()
            stream.end()
        except Exception as problem:
            stream.end(problem)

    def _part(self, stream: WorkerStream) -> None:
        """A stream has ended, however it did."""
        worker_id = stream.facts.worker_id
        if self.streams.get(worker_id) is not stream:
            return
        del self.streams[worker_id]
        if stream.watched and not stream.process_ended:
            # What it was doing has ended nothing.
            self._dispatcher.board.say_goodbye(worker_id)
        self._dispatcher.board.leave(worker_id, self._dispatcher.now())
        if not self._closed:
            self._dispatcher.advance_soon()
        why = str(stream.dismissal) if stream.dismissal else stream.goodbye or "connection lost"
        _log.info("worker left", worker_id=worker_id, why=why)
