"""Workers that speak the real protocol and answer after a stated time instead of simulating."""

from __future__ import annotations

import asyncio
import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc

from remy_proto.v1 import evaluation_pb2, worker_service_pb2
from remy_simulator.columns import rule_count, specimen_count
from services.tests.transport.greeting import hello, make_stub

_CHANNEL_OPTIONS = (("grpc.use_local_subchannel_pool", 1),)

#: A task's time in seconds, by what it has in common with others and by its slice.
Duration = Callable[[evaluation_pb2.EvaluationRequest, evaluation_pb2.EvaluationRequest], float]


def possible_outcome(
    shared: evaluation_pb2.EvaluationRequest, part: evaluation_pb2.EvaluationRequest, rules: int
) -> bytes:
    """A serialized outcome that passes for that of a slice."""
    specimens = specimen_count(part)
    simulations = len(part.candidates) * specimens
    # Every kind of specimen has one group of senders here.
    counts = part.specimen_columns.sender_counts
    outcome = evaluation_pb2.EvaluationOutcome(
        packets_sent=[31_999 * count for count in counts] * len(part.candidates)
    )
    if shared.HasField("objective"):
        outcome.scores = _SCORE * simulations
    else:
        columns = outcome.senders
        senders = sum(counts) * len(part.candidates)
        columns.packets_received.extend([31_415] * senders)
        columns.packets_sent.extend([31_999] * senders)
        columns.packets_lost.extend([17] * senders)
        columns.on_ms = struct.pack("<d", 2.5) * senders
        columns.share_ms = struct.pack("<d", 1.25) * senders
        columns.delay_sum_ms = struct.pack("<d", 1e6 / 3) * senders
        columns.first_on_ms = struct.pack("<d", 0.1) * senders
    if shared.recording == evaluation_pb2.RECORDING_USED:
        mask = ((1 << rules) - 1).to_bytes((rules + 7) // 8, "little")
        outcome.used_rules = mask * specimens
    elif shared.recording:
        outcome.rule_uses.extend([1234] * rules)
    return outcome.SerializeToString()


_SCORE = struct.pack("<d", -0.31)


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
    #: Of each shared part: what it says, and how many rules its table has.
    _shared: dict[bytes, tuple[evaluation_pb2.EvaluationRequest, int]] = field(default_factory=dict)
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
            case "shared":
                shared = evaluation_pb2.EvaluationRequest.FromString(response.shared.request)
                self._shared[response.shared.digest] = shared, rule_count(shared.tables[0])
            case "tasks":
                for task in response.tasks.tasks:
                    self._begin(response.tasks.shared_digest, task)

    def _beat(self, seconds: float) -> None:
        if not self.connected:
            return
        quiet, self._tasks_at_beat = self._tasks_at_beat == self.tasks_done, self.tasks_done
        if quiet:
            heartbeat = worker_service_pb2.Heartbeat()
            self._outbox.put_nowait(worker_service_pb2.WorkRequest(heartbeat=heartbeat))
        asyncio.get_running_loop().call_later(seconds, self._beat, seconds)

    def _begin(self, digest: bytes, task: worker_service_pb2.Task) -> None:
        loop = asyncio.get_running_loop()
        thread = min(range(self.threads), key=self._free_at.__getitem__)
        seconds = self.duration(self._shared[digest][0], task.slice)
        self._free_at[thread] = max(self._free_at[thread], loop.time()) + seconds
        loop.call_at(self._free_at[thread], self._end, digest, task, seconds)

    def _end(self, digest: bytes, task: worker_service_pb2.Task, seconds: float) -> None:
        shared, rules = self._shared[digest]
        outcome = possible_outcome(shared, task.slice, rules)
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
