"""Somebody who watches a job through everything that happens to its coordinator."""

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
    """A connection that waits for a coordinator that is away."""
    return Connection(
        ConnectionSettings(parse_address(address)),
        patience_seconds=TIMEOUT_SECONDS,
        retry=RetryPolicy(first_seconds=0.02, most_seconds=0.2),
    )


class Watcher:
    """Keeps all that it has been shown, while its context lasts."""

    def __init__(self, address: str, job: str) -> None:
        self._address = address
        self._job = job
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        #: As they came.
        self.events: list[job_pb2.JobEvent] = []
        #: The newest that was shown.
        self.shown = job_pb2.Job()
        self._trouble: Exception | None = None

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
        """Steps that are known to be committed."""
        return max((event.progress.step for event in self.events), default=0)

    @property
    def is_over(self) -> bool:
        """Whether the watch has come to its end."""
        return not self._thread.is_alive()

    def wait_for_step(self, step: int) -> None:
        """Returns once so many steps are known to be committed, or the job is over."""
        with self._changed:
            found = self._changed.wait_for(
                lambda: self.step >= step or self.is_over, timeout=TIMEOUT_SECONDS
            )
        assert found, f"step {step} was not made; the last one known is {self.step}"

    def wait_for_end(self) -> None:
        """Returns once the job is over."""
        self._thread.join(TIMEOUT_SECONDS)
        assert self.is_over, self.shown
        if self._trouble is not None:
            raise self._trouble

    def _watch(self) -> None:
        try:
            with connect(self._address) as connection:
                for update in watch_job(connection, self._job):
                    with self._changed:
                        if isinstance(update, job_pb2.JobEvent):
                            self.events.append(update)
                        elif isinstance(update, job_pb2.Job):
                            self.shown = update
                        self._changed.notify_all()
        except Exception as error:
            self._trouble = error
