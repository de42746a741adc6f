"""An evaluator that many designs share, on workers that call in over gRPC."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc
import structlog

from remy_farm.v1 import (
    design_service_pb2,
    evaluation_pb2,
    worker_service_pb2,
    worker_service_pb2_grpc,
)
from remy_services.evaluation import Evaluation, OnProgress, Share
from remy_services.fleet.board import Assignment, BoardSnapshot, TaskBoard
from remy_services.fleet.dispatch import Dispatcher
from remy_services.fleet.information import describe_evaluators
from remy_services.fleet.workers.greeting import SimulatorIdentity, Unwelcome
from remy_services.fleet.workers.idleness import tell_the_idle
from remy_services.fleet.workers.servicer import WorkerServicer
from remy_services.fleet.workers.settings import WorkerFleetSettings
from remy_services.fleet.workers.stream import Traffic, WorkerStream
from remy_services.fleet.workers.task_messages import TaskMessages, task_message

_log = structlog.get_logger()


class WorkerFleet:
    """A SharedEvaluator; workers reach it through the gRPC server that it is added to."""

    def __init__(
        self,
        settings: WorkerFleetSettings | None = None,
        *,
        work_left: Callable[[str], bool] = lambda job_id: False,
        reproductions: Path | None = None,
        simulator: SimulatorIdentity | None = None,
    ) -> None:
        """No workers yet.

        `work_left(job_id)` says whether a job, or any if empty, will still have something to
        evaluate after what it has asked for so far; workers that exit when idle wait for it. Tasks
        that kept ending workers are written to the folder `reproductions`. `simulator` is what a
        worker's must equal, by default the one that is installed here.
        """
        self._settings = settings or WorkerFleetSettings()
        self._work_left = work_left
        # Far from what another coordinator's board, or an earlier one's, counted up to.
        self._board = TaskBoard(
            self._settings.board,
            first_lease_id=secrets.randbits(48),
        )
        self._dispatcher = Dispatcher(self._board, self, reproductions=reproductions)
        self._messages = TaskMessages()
        self._idle_watch: asyncio.Task[None] | None = None
        self.traffic = Traffic()
        self._servicer = WorkerServicer(
            self._settings, simulator or SimulatorIdentity.own(), self._dispatcher, self.traffic
        )

    def add_to(self, server: grpc.aio.Server) -> None:
        """Serves WorkerService; who may call is for the server's interceptors to decide.

        To be called once, in the event loop.
        """
        # What is generated has no types.
        add: Any = worker_service_pb2_grpc.add_WorkerServiceServicer_to_server
        add(self._servicer, server)
        self._idle_watch = asyncio.create_task(self._watch_the_idle())

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        return await self._dispatcher.evaluate(share, request, on_progress)

    def info(self) -> design_service_pb2.EvaluatorsInfo:
        return describe_evaluators("workers", self.snapshot())

    def snapshot(self) -> BoardSnapshot:
        """What the board behind the workers holds, and what it has counted."""
        return self._board.snapshot()

    async def close(self) -> None:
        if self._idle_watch is not None:
            self._idle_watch.cancel()
            await asyncio.gather(self._idle_watch, return_exceptions=True)
        await self._dispatcher.close()
        self._servicer.close()

    # What the dispatcher asks of a transport.

    def assign(self, assignments: Sequence[Assignment]) -> None:
        for assignment in assignments:
            stream = self._servicer.streams.get(assignment.worker_id)
            if stream is not None:
                self._send_task(stream, assignment)

    def cancel(self, worker_id: str, lease_ids: Sequence[int]) -> None:
        stream = self._servicer.streams.get(worker_id)
        if stream is not None:
            cancelled = worker_service_pb2.TasksCancelled(lease_ids=lease_ids)
            stream.send(worker_service_pb2.WorkResponse(cancelled=cancelled))

    def expel(self, worker_id: str, why: str) -> None:
        _log.error("worker quarantined", worker_id=worker_id, why=why)
        stream = self._servicer.streams.get(worker_id)
        if stream is not None:
            sentence = f"worker {worker_id} is quarantined: {why}"
            stream.end(Unwelcome(grpc.StatusCode.FAILED_PRECONDITION, sentence))

    def _send_task(self, stream: WorkerStream, assignment: Assignment) -> None:
        tables = self._messages.tables(assignment)
        unknown = stream.tables.to_send(tables)
        if unknown is not None:
            message = worker_service_pb2.WorkResponse(tables=unknown)
            self.traffic.tables_bytes += message.ByteSize()
            stream.send(message)
        message = worker_service_pb2.WorkResponse(task=task_message(assignment, tables.digest))
        self.traffic.task_bytes += message.ByteSize()
        stream.send(message)

    async def _watch_the_idle(self) -> None:
        while True:
            await asyncio.sleep(min(self._settings.idle_seconds / 4, 1.0))
            tell_the_idle(
                self._servicer.streams.values(),
                self._has_work,
                self._settings.idle_seconds,
                self._dispatcher.now(),
            )

    def _has_work(self, job_id: str) -> bool:
        return self._board.has_evaluations(job_id) or self._work_left(job_id)
