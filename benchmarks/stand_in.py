"""Implements workers that use the real protocol but answer after a set time without simulating."""

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

#: A function of a task's shared part and of its slice that returns the task's duration in seconds.
Duration = Callable[[evaluation_pb2.EvaluationRequest, evaluation_pb2.EvaluationRequest], float]


def possible_outcome(
    shared: evaluation_pb2.EvaluationRequest, part: evaluation_pb2.EvaluationRequest, rules: int
) -> bytes:
    """Returns a serialized outcome that passes the coordinator's checks for a slice."""
    specimens = specimen_count(part)
    simulations = len(part.candidates) * specimens
    # A specimen has one group of senders here.
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
    """One stand-in worker. It processes `threads` tasks concurrently, without real threads."""

    worker_id: str
    duration: Duration
    threads: int = 1
    #: Queued tasks per thread, beside the one in progress.
    reserve: int = 1
    #: The CPU seconds that it reports for a task, as a multiple of the task's duration.
    cpu_share: float = 1.0
    #: Fields of the Hello message that differ from a real worker's.
    changes: dict[str, Any] = field(default_factory=dict)
    #: The seconds of all tasks done so far.
    busy_seconds: float = 0.0
    tasks_done: int = 0
    connected: bool = False
    _tasks_at_heartbeat: int = 0
    _free_at: list[float] = field(default_factory=list)
    #: Shared parts by digest, each with the number of rules of its table.
    _shared: dict[bytes, tuple[evaluation_pb2.EvaluationRequest, int]] = field(default_factory=dict)
    _outbox: asyncio.Queue[worker_service_pb2.WorkRequest] = field(default_factory=asyncio.Queue)

    async def work(self, port: int) -> None:
        """Connects to a coordinator on this machine and serves it until the call ends."""
        self._free_at = [0.0] * self.threads
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", _CHANNEL_OPTIONS) as channel:
            call = make_stub(channel).Work()
            await call.write(hello(self.worker_id, threads=self.threads, **self.changes))
            credit = worker_service_pb2.Credit(tasks=self.threads * (1 + self.reserve))
            await call.write(worker_service_pb2.WorkRequest(credit=credit))
            writing = asyncio.create_task(self._write(call))
            try:
                async for response in call:
                    self._on_response(response)
            finally:
                self.connected = False
                writing.cancel()
                await asyncio.gather(writing, return_exceptions=True)

    async def _write(self, call: Any) -> None:
        while True:
            await call.write(await self._outbox.get())

    def _on_response(self, response: worker_service_pb2.WorkResponse) -> None:
        match response.WhichOneof("message"):
            case "welcome":
                self.connected = True
                self._send_heartbeat_if_idle(response.welcome.heartbeat_seconds)
            case "shared":
                shared = evaluation_pb2.EvaluationRequest.FromString(response.shared.request)
                self._shared[response.shared.digest] = shared, rule_count(shared.tables[0])
            case "tasks":
                for task in response.tasks.tasks:
                    self._start_task(response.tasks.shared_digest, task)

    def _send_heartbeat_if_idle(self, interval_seconds: float) -> None:
        """Sends a heartbeat if no result was sent since the last call, and schedules the next."""
        if not self.connected:
            return
        is_idle = self._tasks_at_heartbeat == self.tasks_done
        self._tasks_at_heartbeat = self.tasks_done
        if is_idle:
            heartbeat = worker_service_pb2.Heartbeat()
            self._outbox.put_nowait(worker_service_pb2.WorkRequest(heartbeat=heartbeat))
        asyncio.get_running_loop().call_later(
            interval_seconds, self._send_heartbeat_if_idle, interval_seconds
        )

    def _start_task(self, digest: bytes, task: worker_service_pb2.Task) -> None:
        loop = asyncio.get_running_loop()
        thread = min(range(self.threads), key=self._free_at.__getitem__)
        seconds = self.duration(self._shared[digest][0], task.slice)
        self._free_at[thread] = max(self._free_at[thread], loop.time()) + seconds
        loop.call_at(self._free_at[thread], self._finish_task, digest, task, seconds)

    def _finish_task(self, digest: bytes, task: worker_service_pb2.Task, seconds: float) -> None:
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
