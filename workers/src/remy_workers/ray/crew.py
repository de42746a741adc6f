"""All actors of a driver: as many as there should be, each at work."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import grpc
import structlog

from remy_workers.ending import Ending
from remy_workers.ray.cluster import ActorGone, Census, ClusterUnavailable, RayCluster
from remy_workers.ray.line import Refused
from remy_workers.ray.member import Member
from remy_workers.ray.sizing import Node, Sizing
from remy_workers.ray.tables import TableStore
from remy_workers.ray.watch import ClusterWatch
from remy_workers.settings import WorkerSettings

_SECONDS_BETWEEN_CENSUSES = 1.0
_CENSUS_SECONDS = 10.0
_NODE_ANSWERS_SECONDS = 2.0

_T = TypeVar("_T")

_log = structlog.get_logger()


class ClusterLost(Exception):
    """Only a new process gets a connection to the cluster again. One sentence."""


@dataclass(eq=False)
class Crew:
    """The members, and what they share (member.Surroundings)."""

    cluster: RayCluster
    sizing: Sizing
    settings: WorkerSettings
    channel: grpc.aio.Channel
    store: TableStore
    ending: Ending
    watch: ClusterWatch
    _nodes: dict[str, Node] = field(default_factory=dict)
    _members: dict[str, Member] = field(default_factory=dict)
    _running: dict[asyncio.Task[None], Member] = field(default_factory=dict)
    _refused: int = 0

    async def run(self) -> None:
        """Works until it is to end. Raises ClusterLost, and Refused if all actors are refused."""
        stop = asyncio.create_task(asyncio.to_thread(self.ending.wait))
        prefix = secrets.token_hex(4)
        number = 0
        while not stop.done():
            census = await self._census()
            if census is not None:
                for _ in range(self._missing(census)):
                    number += 1
                    await self._start(f"{prefix}-{number}")
            await asyncio.wait(
                {stop, *self._running},
                timeout=_SECONDS_BETWEEN_CENSUSES,
                return_when=asyncio.FIRST_COMPLETED,
            )
            await self._collect()
        await asyncio.gather(*(member.end(self.ending.why) for member in self._members.values()))

    async def answers(self, node_id: str) -> bool:
        """Whether the raylet of a node takes connections."""
        node = self._nodes.get(node_id)
        if node is None:
            return False
        try:
            async with asyncio.timeout(_NODE_ANSWERS_SECONDS):
                _, writer = await asyncio.open_connection(node.address, node.port)
        except OSError:
            return False
        writer.close()
        return True

    async def _census(self) -> Census | None:
        """None if the cluster does not answer now. Raises ClusterLost."""
        loop = asyncio.get_running_loop()
        census: Census | None = None
        try:
            census = found = await self._ask(self.cluster.census)
        except (ClusterUnavailable, TimeoutError):
            why = self.watch.silent(loop.time())
        else:
            self._nodes |= {node.node_id: node for node in found.nodes}
            why = self.watch.answered(
                own_node_is_alive=found.own_node_is_alive,
                known=found.actors,
                running=frozenset(name for name, member in self._members.items() if member.has_run),
                now=loop.time(),
            )
        if why:
            raise ClusterLost(why)
        return census

    async def _ask(self, question: Callable[[], _T]) -> _T:
        """What Ray answers, asked in a thread that is given up if it takes too long."""
        return await asyncio.wait_for(asyncio.to_thread(question), _CENSUS_SECONDS)

    def _missing(self, census: Census) -> int:
        pending = [member for member in self._members.values() if not member.is_running]
        missing = self.sizing.missing(
            census.nodes,
            # Whoever takes the place of one that is refused would be refused as well.
            started=len(self._members) + self._refused,
            pending=len(pending),
            free_cpus=census.free_cpus,
        )
        for member in pending[: max(-missing, 0)]:
            self._dismiss(member)
        return max(missing, 0)

    async def _start(self, name: str) -> None:
        try:
            actor = await self._ask(lambda: self.cluster.start(name))
        except (ClusterUnavailable, TimeoutError) as problem:
            _log.warning("no actor started", why=str(problem))
            return
        member = self._members[name] = Member(actor, self)
        self._running[asyncio.create_task(member.run())] = member

    def _dismiss(self, member: Member) -> None:
        for task, each in self._running.items():
            if each is member:
                task.cancel()

    async def _collect(self) -> None:
        """Lets go of members that have ended. Raises Refused if none is left at work."""
        for task in [task for task in self._running if task.done()]:
            member = self._running.pop(task)
            del self._members[member.name]
            error = None if task.cancelled() else task.exception()
            match error:
                case ActorGone():
                    _log.warning("an actor is gone for good", why=str(error))
                    continue
                case Refused():
                    _log.error("the coordinator refuses an actor", why=str(error))
                    self._refused += 1
                case BaseException():
                    raise error
            with contextlib.suppress(ClusterUnavailable, TimeoutError):
                await self._ask(member.kill)
            if error is not None and not any(each.is_running for each in self._members.values()):
                raise error
