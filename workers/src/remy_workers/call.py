"""One call of a worker to its coordinator, from Hello until it ends or breaks."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from importlib.metadata import version

import structlog

import remy_simulator
from remy_farm.v1 import worker_service_pb2
from remy_simulator import InvalidTable
from remy_simulator.cpus import allowed_cpus
from remy_workers.desk import Desk
from remy_workers.ending import IDLE, Ending
from remy_workers.heartbeat import Heartbeat
from remy_workers.settings import WorkerSettings
from remy_workers.simulation import refusal
from remy_workers.tables import KnownTables, UnknownTables
from remy_workers.telemetry.metrics import TaskEnd, WorkerMetrics
from remy_workers.workload import Work

_log = structlog.get_logger()


def hello(settings: WorkerSettings) -> worker_service_pb2.WorkRequest:
    """Who calls."""
    return worker_service_pb2.WorkRequest(
        hello=worker_service_pb2.Hello(
            worker_id=settings.worker_id,
            version=version("remy-farm-worker"),
            simulator_version=version("remy-simulator"),
            simulator_digest=remy_simulator.fingerprint(),
            cpus=allowed_cpus(),
            threads=settings.threads,
            host=socket.gethostname(),
            job_id=settings.job_id,
            exit_when_idle=settings.exit_when_idle,
        )
    )


class Call:
    """What the coordinator says, brought to the desk."""

    def __init__(
        self,
        settings: WorkerSettings,
        desk: Desk,
        ending: Ending,
        heartbeat: Heartbeat,
        metrics: WorkerMetrics,
    ) -> None:
        self._settings = settings
        self._desk = desk
        self._ending = ending
        self._heartbeat = heartbeat
        self._metrics = metrics
        self._tables = KnownTables()
        self.was_welcome = False

    def hear_all(self, responses: Iterable[worker_service_pb2.WorkResponse]) -> None:
        """Hears the coordinator until it ends the call. Raises what `responses` raises."""
        for response in responses:
            match response.WhichOneof("message"):
                case "task":
                    self._hear_task(response.task)
                case "tables":
                    self._tables.learn(response.tables)
                case "cancelled":
                    for _ in range(self._desk.cancel(response.cancelled.lease_ids)):
                        self._metrics.task_dropped(TaskEnd.CANCELLED)
                case "welcome":
                    self._hear_welcome(response.welcome)
                case "nothing_left":
                    self._ending.ask(IDLE)

    def _hear_welcome(self, welcome: worker_service_pb2.Welcome) -> None:
        self.was_welcome = True
        self._heartbeat.seconds = welcome.heartbeat_seconds
        self._metrics.connected()
        _log.info("connected", coordinator=str(self._settings.coordinator))

    def _hear_task(self, task: worker_service_pb2.Task) -> None:
        try:
            tables = self._tables.find(task.tables_digest)
        except UnknownTables:
            returned = worker_service_pb2.TasksReturned(lease_ids=[task.lease_id])
            self._desk.say(worker_service_pb2.WorkRequest(returned=returned))
            self._metrics.task_dropped(TaskEnd.RETURNED)
            return
        except InvalidTable as problem:
            self._desk.say(refusal(task.lease_id, str(problem)))
            self._metrics.task_dropped(TaskEnd.REFUSED)
            return
        self._desk.receive(
            Work(task.lease_id, task.job_id, task.request, tables, task.trace_parent)
        )
