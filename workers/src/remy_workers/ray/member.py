"""One actor at work: what the coordinator asks it to do, for as long as it lives."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

import grpc
import structlog

from remy_farm.v1 import worker_service_pb2
from remy_workers.desk import Desk
from remy_workers.ending import Ending
from remy_workers.ray.cluster import ActorGone, ActorLost, RayActor
from remy_workers.ray.line import Line
from remy_workers.ray.tables import StoredTables, TableStore
from remy_workers.settings import WorkerSettings
from remy_workers.workload import Work

# Between two questions whether a lost actor runs again.
_RETRY_SECONDS = 0.25
# For the coordinator to hear what was said last.
_LAST_WORDS_SECONDS = 1.5

_ENDED = worker_service_pb2.WorkRequest(ended=worker_service_pb2.Ended())
_NODE_LOST = worker_service_pb2.WorkRequest(goodbye=worker_service_pb2.Goodbye(why="node_lost"))

_log = structlog.get_logger()


class Surroundings(Protocol):
    """What all members share."""

    settings: WorkerSettings
    channel: grpc.aio.Channel
    store: TableStore
    ending: Ending

    async def answers(self, node_id: str) -> bool:
        """Whether a node is still there."""


class Member:
    """Works as long as Ray keeps the actor."""

    def __init__(self, actor: RayActor, around: Surroundings) -> None:
        """Nothing yet."""
        self._actor = actor
        self._around = around
        self._desk: Desk[StoredTables] | None = None
        self._line: Line | None = None
        self._heartbeat_seconds = 1.0
        #: Whether the actor runs, and has said who it is.
        self.is_running = False
        #: Whether it ever did.
        self.has_run = False

    @property
    def name(self) -> str:
        """The actor's, in the cluster."""
        return self._actor.name

    @property
    def seconds(self) -> float:
        """How often to look whether the actor lives, as the coordinator says. See Pulse."""
        return self._heartbeat_seconds

    @seconds.setter
    def seconds(self, value: float) -> None:
        self._heartbeat_seconds = value

    async def run(self) -> None:
        """Works until `end`. Raises ActorGone and Refused."""
        while not self._around.ending.why:
            try:
                hello = await self._actor.introduce()
                node_id = await self._actor.node_id()
                reachable = await self._around.answers(node_id)
            except ActorLost:
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            self.is_running = self.has_run = True
            try:
                await self._work(hello, node_id, reachable)
            finally:
                self.is_running = False

    def kill(self) -> None:
        """Ends the actor for good."""
        self._actor.kill()

    async def end(self, why: str) -> None:
        """Says goodbye, ends what has begun, and returns the rest."""
        if self._desk is None or self._line is None:
            return
        self._desk.wind_down(why)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._around.settings.drain_seconds
        while not self._desk.is_idle and loop.time() < deadline:
            await asyncio.sleep(0.05)
        self._line.close()

    async def _work(self, hello: worker_service_pb2.Hello, node_id: str, reachable: bool) -> None:
        """Works as long as the actor's process lives. Raises Refused."""
        settings = self._around.settings
        hello.threads = settings.threads
        hello.job_id = settings.job_id
        hello.exit_when_idle = settings.exit_when_idle
        hello.watched = True
        news = asyncio.Event()
        desk: Desk[StoredTables] = Desk(news.set)
        line = Line(settings, hello, desk, self._around.store, self._around.ending)
        self._desk, self._line = desk, line
        calling = asyncio.create_task(line.run(self._around.channel, self))
        living = [asyncio.create_task(self._pulse(desk))]
        living += [asyncio.create_task(self._evaluate(desk, news)) for _ in range(settings.threads)]
        try:
            await asyncio.wait([calling, *living], return_when=asyncio.FIRST_COMPLETED)
            if not calling.done():
                _check(living)
                last_word = await self._last_word(node_id, reachable)
                _log.warning(
                    "actor lost", worker_id=hello.worker_id, why=last_word.WhichOneof("message")
                )
                line.break_off(last_word)
                await asyncio.wait([calling], timeout=_LAST_WORDS_SECONDS)
            if calling.done():
                calling.result()
        finally:
            self._desk = self._line = None
            for task in (calling, *living):
                task.cancel()
            await asyncio.gather(calling, *living, return_exceptions=True)

    async def _last_word(self, node_id: str, reachable: bool) -> worker_service_pb2.WorkRequest:
        """A task may have ended the actor, unless its whole node has gone."""
        if reachable and not await self._around.answers(node_id):
            return _NODE_LOST
        return _ENDED

    async def _pulse(self, desk: Desk[StoredTables]) -> None:
        """Raises ActorLost and ActorGone when the actor has ended."""
        while True:
            await self._actor.check()
            desk.beat()
            await asyncio.sleep(self._heartbeat_seconds)

    async def _evaluate(self, desk: Desk[StoredTables], news: asyncio.Event) -> None:
        """Has the actor do one task after the other. Raises ActorLost and ActorGone."""
        while True:
            work = desk.take_now()
            if work is None:
                news.clear()
                await news.wait()
                continue
            desk.hand_in(work, await self._actor.evaluate(work.tables, _task(work)))


def _check(living: Iterable[asyncio.Task[None]]) -> None:
    """Raises what has ended one of the tasks, unless it is the end of the actor."""
    for task in living:
        error = task.exception() if task.done() else None
        if error is not None and not isinstance(error, ActorLost | ActorGone):
            raise error


def _task(work: Work[StoredTables]) -> worker_service_pb2.Task:
    return worker_service_pb2.Task(
        lease_id=work.lease_id,
        job_id=work.job_id,
        tables_digest=work.tables.digest,
        request=work.request,
        trace_parent=work.trace_parent,
    )
