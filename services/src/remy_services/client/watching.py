"""Watches a job across lost connections."""

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

# Wait before the stream is reopened if it ends before the job without an error.
_SECONDS_AFTER_EARLY_END = 1.0


class HistoryGap(Exception):
    """A history event is missing. The message says which."""


class HistoryCursor:
    """Position in a job's history, which detects repeated and missing events."""

    def __init__(self, after_revision: int = 0) -> None:
        #: Revision of the last accepted event.
        self.revision = after_revision

    def accept(self, event: job_pb2.JobEvent) -> bool:
        """Returns True for the next event, False for one that was already seen.

        Raises HistoryGap if events are missing.
        """
        if event.revision <= self.revision:
            return False
        if event.revision != self.revision + 1:
            raise HistoryGap(
                f"event {event.revision} of the job's history followed event {self.revision}"
            )
        self.revision = event.revision
        return True


@dataclass(frozen=True)
class ConnectionLost:
    """The connection was lost; the watch continues when the coordinator is back."""

    #: The error, in one sentence.
    why: str


@dataclass(frozen=True)
class ConnectionBack:
    """The connection has been restored."""


Update = job_pb2.Job | job_pb2.JobEvent | ConnectionLost | ConnectionBack


def watch_job(connection: Connection, job: str, *, after_revision: int = 0) -> Iterator[Update]:
    """Yields a job's history events after a revision, in order and exactly once, and its progress.

    Ends with the Job in its final state. After the first successful connection, lost connections
    are retried forever. Raises ServiceError.
    """
    watch = _Watch(connection, job, after_revision)
    for attempt in connection.retrying(stop=watch.stop, sleep=watch.sleep_in_next_attempt):
        with attempt:
            for update in watch.run():
                if not isinstance(update, ConnectionLost):
                    # The coordinator answered, so the backoff restarts.
                    attempt.retry_state.attempt_number = 1
                yield update


class _Watch:
    """State of a watch across connections."""

    def __init__(self, connection: Connection, job: str, after_revision: int) -> None:
        self._connection = connection
        # Replaced by the job's id with the first response, because names can become ambiguous.
        self._job = job
        self._cursor = HistoryCursor(after_revision)
        self._has_connected = False
        self._is_lost = False
        self._is_final = False
        self._trouble: ServiceError | None = None
        self._sleep_seconds = 0.0
        self._give_up = tenacity.stop_before_delay(connection.patience_seconds)

    def stop(self, state: tenacity.RetryCallState) -> bool:
        """Returns whether to give up; never after the first successful connection."""
        return not self._has_connected and self._give_up(state)

    def sleep_in_next_attempt(self, seconds: float) -> None:
        """Delays the sleep until ConnectionLost has been yielded."""
        self._sleep_seconds = seconds

    def run(self) -> Iterator[Update]:
        """Yields updates until a connection breaks, which raises ServiceError."""
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
                    yield from self._handle_response(response)
            except grpc.RpcError as error:
                self._trouble = self._connection.error(error)
                raise self._trouble from None
            finally:
                stream.cancel()
            if self._is_final:
                return
            time.sleep(_SECONDS_AFTER_EARLY_END)

    def _handle_response(self, response: messages.WatchJobResponse) -> Iterator[Update]:
        complete(response)
        self._has_connected = True
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
            return self._cursor.accept(event)
        except HistoryGap as error:
            address = self._connection.address
            raise ServerFailed(
                f"the coordinator at {address} skipped history events: {error}",
                grpc.StatusCode.DATA_LOSS,
            ) from error
