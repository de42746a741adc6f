"""Workers that speak the real protocol and answer after a stated time instead of simulating."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import grpc

import remy_simulator
from remy_farm.v1 import evaluation_pb2, worker_service_pb2, worker_service_pb2_grpc

_CHANNEL_OPTIONS = (("grpc.use_local_subchannel_pool", 1),)

#: A task's time in seconds.
Duration = Callable[[worker_service_pb2.Task], float]


def make_stub(channel: grpc.aio.Channel) -> Any:
    """The generated stub, which has no types."""
    make: Any = worker_service_pb2_grpc.WorkerServiceStub
    return make(channel)


def hello(worker_id: str, /, **changes: Any) -> worker_service_pb2.WorkRequest:
    """A greeting that is welcome, but for the changes."""
    said: dict[str, Any] = {
        "worker_id": worker_id,
        "version": "0",
        "simulator_version": version("remy-simulator"),
        "simulator_digest": remy_simulator.fingerprint(),
        "threads": 1,
        **changes,
    }
    return worker_service_pb2.WorkRequest(hello=worker_service_pb2.Hello(**said))


def possible_outcome(request: evaluation_pb2.EvaluationRequest, rules: int = 0) -> bytes:
    """A serialized outcome that passes for the request's."""
    pieces = [
        _piece(sum(group.count for group in specimen.senders), rules)
        for specimen in request.specimens
    ]
    return b"".join(pieces) * len(request.candidates)


_PIECES: dict[tuple[int, int], bytes] = {}


def _piece(senders: int, rules: int) -> bytes:
    """One specimen's part of a serialized outcome; parts may be strung together."""
    piece = _PIECES.get((senders, rules))
    if piece is None:
        result = evaluation_pb2.SpecimenOutcome(
            packets_received=[31_415] * senders,
            packets_sent=[31_999] * senders,
            packets_lost=[17] * senders,
            on_ms=[2.5] * senders,
            share_ms=[1.25] * senders,
            delay_sum_ms=[1e6 / 3] * senders,
            first_on_ms=[0.1] * senders,
            rule_uses=[1234] * rules,
        )
        piece = evaluation_pb2.EvaluationOutcome(outcomes=[result]).SerializeToString()
        _PIECES[senders, rules] = piece
    return piece


@dataclass
class StandIn:
    """One worker. It has threads only in so far as it answers so many tasks at a time."""

    worker_id: str
    duration: Duration
    threads: int = 1
    #: Tasks for each thread that wait their turn.
    reserve: int = 1
    #: CPU seconds that it says a task took, as a multiple of its duration.
    cpu_share: float = 1.0
    changes: dict[str, Any] = field(default_factory=dict)
    #: Seconds that its threads had something to do, together.
    busy_seconds: float = 0.0
    tasks_done: int = 0
    connected: bool = False
    _tasks_at_beat: int = 0
    _free_at: list[float] = field(default_factory=list)
    _rules: dict[bytes, int] = field(default_factory=dict)
    _outbox: asyncio.Queue[worker_service_pb2.WorkRequest] = field(default_factory=asyncio.Queue)

    async def work(self, port: int) -> None:
        """Calls a coordinator on this machine, and works until the call ends."""
        self._free_at = [0.0] * self.threads
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", _CHANNEL_OPTIONS) as channel:
            call = make_stub(channel).Work()
            await call.write(hello(self.worker_id, threads=self.threads, **self.changes))
            credit = worker_service_pb2.Credit(tasks=self.threads * (1 + self.reserve))
            await call.write(worker_service_pb2.WorkRequest(credit=credit))
            writing = asyncio.create_task(self._write(call))
            try:
                async for response in call:
                    self._hear(response)
            finally:
                self.connected = False
                writing.cancel()
                await asyncio.gather(writing, return_exceptions=True)

    async def _write(self, call: Any) -> None:
        while True:
            await call.write(await self._outbox.get())

    def _hear(self, response: worker_service_pb2.WorkResponse) -> None:
        match response.WhichOneof("message"):
            case "welcome":
                self.connected = True
                self._beat(response.welcome.heartbeat_seconds)
            case "tables":
                table = response.tables.tables[0]
                rules = sum(node.HasField("action") for node in table.nodes)
                self._rules[response.tables.digest] = rules
            case "task":
                self._begin(response.task)

    def _beat(self, seconds: float) -> None:
        if not self.connected:
            return
        quiet, self._tasks_at_beat = self._tasks_at_beat == self.tasks_done, self.tasks_done
        if quiet:
            heartbeat = worker_service_pb2.Heartbeat()
            self._outbox.put_nowait(worker_service_pb2.WorkRequest(heartbeat=heartbeat))
        asyncio.get_running_loop().call_later(seconds, self._beat, seconds)

    def _begin(self, task: worker_service_pb2.Task) -> None:
        loop = asyncio.get_running_loop()
        thread = min(range(self.threads), key=self._free_at.__getitem__)
        seconds = self.duration(task)
        self._free_at[thread] = max(self._free_at[thread], loop.time()) + seconds
        loop.call_at(self._free_at[thread], self._end, task, seconds)

    def _end(self, task: worker_service_pb2.Task, seconds: float) -> None:
        recorded = self._rules.get(task.tables_digest, 0) if task.request.recording else 0
        outcome = possible_outcome(task.request, recorded)
        result = worker_service_pb2.TaskResult(
            lease_id=task.lease_id,
            outcome=outcome,
            sha256=hashlib.sha256(outcome).digest(),
            cpu_seconds=seconds * self.cpu_share,
            wall_seconds=seconds,
        )
        self.busy_seconds += seconds
        self.tasks_done += 1
        self._outbox.put_nowait(worker_service_pb2.WorkRequest(result=result))
