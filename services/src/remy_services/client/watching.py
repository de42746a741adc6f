"""Watching a job through everything that may happen to the connection."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import grpc
import tenacity

from remy_proto.completion import complete
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_services.client.connection import Connection
from remy_services.client.design_client import FINAL_STATES
from remy_services.client.status import ServerFailed, ServiceError

# Where a stream ends before the job does, nothing says how long to wait.
_SECONDS_AFTER_EARLY_END = 1.0


class GapInHistory(Exception):
    """An entry was left out; the message says which."""


class HistoryCursor:
    """Knows how far a job's history has been seen, so that no entry is lost or repeated."""

    def __init__(self, after_revision: int = 0) -> None:
        #: Of the last entry that was taken.
        self.revision = after_revision

    def take(self, event: job_pb2.JobEvent) -> bool:
        """Whether the entry is the next one; an entry that was seen before is not.

        Raises GapInHistory if there must have been another in between.
        """
        if event.revision <= self.revision:
            return False
        if event.revision != self.revision + 1:
            raise GapInHistory(
                f"entry {event.revision} of the job's history followed entry {self.revision}"
            )
        self.revision = event.revision
        return True


@dataclass(frozen=True)
class ConnectionLost:
    """The coordinator has gone away; the watch goes on when it is back."""

    #: One sentence.
    why: str


@dataclass(frozen=True)
class ConnectionBack:
    """The first sign of the coordinator after it was gone."""


Update = job_pb2.Job | job_pb2.JobEvent | ConnectionLost | ConnectionBack


def watch_job(connection: Connection, job: str, *, after_revision: int = 0) -> Iterator[Update]:
    """A job's history after a revision, every entry once and in order, and how far the job is.

    Ends when the job is in a final state, which the last Job that is yielded shows. A coordinator
    that goes away is waited for without end, if it has been there once. Raises ServiceError.
    """
    watch = _Watch(connection, job, after_revision)
    for attempt in connection.retrying(stop=watch.stop, sleep=watch.sleep_in_next_attempt):
        with attempt:
            for update in watch.run():
                if not isinstance(update, ConnectionLost):
                    # It has been heard of: the waits begin anew.
                    attempt.retry_state.attempt_number = 1
                yield update


class _Watch:
    """What outlasts a single connection."""

    def __init__(self, connection: Connection, job: str, after_revision: int) -> None:
        self._connection = connection
        # Replaced by the id, which stays unambiguous.
        self._job = job
        self._cursor = HistoryCursor(after_revision)
        self._was_heard = False
        self._is_lost = False
        self._is_final = False
        self._trouble: ServiceError | None = None
        self._sleep_seconds = 0.0
        self._give_up = tenacity.stop_before_delay(connection.patience_seconds)

    def stop(self, state: tenacity.RetryCallState) -> bool:
        """Whether to give up; never, once the coordinator has been there."""
        return not self._was_heard and self._give_up(state)

    def sleep_in_next_attempt(self, seconds: float) -> None:
        """Before that the loss of the connection is to be told."""
        self._sleep_seconds = seconds

    def run(self) -> Iterator[Update]:
        """The updates of one connection after another, until one breaks. Raises ServiceError."""
        if self._trouble is not None:
            if not self._is_lost:
                self._is_lost = True
                yield ConnectionLost(self._trouble.message)
            time.sleep(self._sleep_seconds)
        while True:
            request = messages.WatchJobRequest(job=self._job, after_revision=self._cursor.revision)
            stream = self._connection.stream("WatchJob", request, deadline_seconds=None)
            try:
                for response in stream:
                    yield from self._take(response)
            except grpc.RpcError as error:
                self._trouble = self._connection.error(error)
                raise self._trouble from None
            finally:
                stream.cancel()
            if self._is_final:
                return
            time.sleep(_SECONDS_AFTER_EARLY_END)

    def _take(self, response: messages.WatchJobResponse) -> Iterator[Update]:
        complete(response)
        self._was_heard = True
        if self._is_lost:
            self._is_lost = False
            yield ConnectionBack()
        if response.HasField("job"):
            self._job = response.job.id
            self._is_final = response.job.state in FINAL_STATES
            yield response.job
        elif response.HasField("event") and self._is_next(response.event):
            yield response.event

    def _is_next(self, event: job_pb2.JobEvent) -> bool:
        try:
            return self._cursor.take(event)
        except GapInHistory as error:
            address = self._connection.address
            raise ServerFailed(
                f"the coordinator at {address} left something out: {error}",
                grpc.StatusCode.DATA_LOSS,
            ) from error
