"""Watches a job through restarts of its coordinator."""

from __future__ import annotations

import threading
from types import TracebackType

from remy_proto.v1 import job_pb2
from remy_rpc.retry import RetryPolicy
from remy_rpc.settings import parse_address
from remy_services.client.connection import Connection
from remy_services.client.settings import ConnectionSettings
from remy_services.client.watching import watch_job
from services.tests.coordinator.running_server import TIMEOUT_SECONDS


def connect(address: str) -> Connection:
    """Returns a connection whose calls wait for a coordinator that is not reachable."""
    return Connection(
        ConnectionSettings(parse_address(address)),
        patience_seconds=TIMEOUT_SECONDS,
        retry=RetryPolicy(first_seconds=0.02, most_seconds=0.2),
    )


class Watcher:
    """Watches a job in a thread and collects its events; leaving the context waits for the end."""

    def __init__(self, address: str, job: str) -> None:
        self._address = address
        self._job_id = job
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        #: All events, in the order of their arrival.
        self.events: list[job_pb2.JobEvent] = []
        #: The newest state of the job.
        self.job = job_pb2.Job()
        self._error: Exception | None = None

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.wait_for_end()

    @property
    def step(self) -> int:
        """The last committed step that was reported."""
        return max((event.progress.step for event in self.events), default=0)

    @property
    def is_over(self) -> bool:
        """Whether the watch has ended."""
        return not self._thread.is_alive()

    def wait_for_step(self, step: int) -> None:
        """Returns once this step is committed or the watch has ended."""
        with self._changed:
            is_reached = self._changed.wait_for(
                lambda: self.step >= step or self.is_over, timeout=TIMEOUT_SECONDS
            )
        assert is_reached, f"step {step} was not reported; the last one is {self.step}"

    def wait_for_end(self) -> None:
        """Returns once the watch has ended. Raises its error, if any."""
        self._thread.join(TIMEOUT_SECONDS)
        assert self.is_over, self.job
        if self._error is not None:
            raise self._error

    def _watch(self) -> None:
        try:
            with connect(self._address) as connection:
                for update in watch_job(connection, self._job_id):
                    with self._changed:
                        if isinstance(update, job_pb2.JobEvent):
                            self.events.append(update)
                        elif isinstance(update, job_pb2.Job):
                            self.job = update
                        self._changed.notify_all()
        except Exception as error:
            self._error = error
