"""One call of a worker to its coordinator, from Hello until it ends or breaks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

import structlog

from remy_farm.v1 import worker_service_pb2
from remy_simulator import InvalidTable
from remy_workers.desk import Desk
from remy_workers.ending import IDLE, Ending
from remy_workers.introduction import introduce
from remy_workers.messages import refusal, returned
from remy_workers.settings import WorkerSettings
from remy_workers.tables import UnknownTables
from remy_workers.telemetry.metrics import TaskEnd
from remy_workers.workload import Tables, Work

Found = TypeVar("Found", covariant=True)

_log = structlog.get_logger()


def hello(settings: WorkerSettings) -> worker_service_pb2.WorkRequest:
    """Who calls."""
    myself = introduce(settings.worker_id, settings.threads)
    myself.job_id = settings.job_id
    myself.exit_when_idle = settings.exit_when_idle
    return worker_service_pb2.WorkRequest(hello=myself)


class Pulse(Protocol):
    """What gives signs of life."""

    #: How often.
    seconds: float


class CallMetrics(Protocol):
    """Is told how calls go. See WorkerMetrics."""

    def connected(self) -> None:
        """The coordinator has welcomed the worker."""

    def disconnected(self) -> None:
        """The stream to the coordinator is gone."""

    def task_dropped(self, end: TaskEnd) -> None:
        """A task ended that no thread had begun with."""


class KnowsTables(Protocol[Found]):
    """Keeps the tables that tasks will name, for one stream."""

    def learn(self, message: worker_service_pb2.TablesKnown) -> None:
        """Tables to know, and those to forget."""

    def find(self, digest: bytes) -> Found:
        """Raises UnknownTables, and InvalidTable for what the simulator does not take."""


class Call(Generic[Tables]):
    """What the coordinator says, brought to the desk."""

    def __init__(
        self,
        settings: WorkerSettings,
        desk: Desk[Tables],
        tables: KnowsTables[Tables],
        ending: Ending,
        heartbeat: Pulse,
        metrics: CallMetrics,
    ) -> None:
        self._settings = settings
        self._desk = desk
        self._ending = ending
        self._heartbeat = heartbeat
        self._metrics = metrics
        self._tables = tables
        self.was_welcome = False

    def hear_all(self, responses: Iterable[worker_service_pb2.WorkResponse]) -> None:
        """Hears the coordinator until it ends the call. Raises what `responses` raises."""
        for response in responses:
            self.hear(response)

    def hear(self, response: worker_service_pb2.WorkResponse) -> None:
        """Hears one thing that the coordinator says."""
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
            self._desk.say(returned([task.lease_id]))
            self._metrics.task_dropped(TaskEnd.RETURNED)
            return
        except InvalidTable as problem:
            self._desk.say(refusal(task.lease_id, str(problem)))
            self._metrics.task_dropped(TaskEnd.REFUSED)
            return
        self._desk.receive(
            Work(task.lease_id, task.job_id, task.request, tables, task.trace_parent)
        )
