"""What a worker has to say, in order, for the thread that writes a stream."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator

from remy_farm.v1 import worker_service_pb2


class Outbox:
    """Messages of one stream; may be used from any thread.

    Iterating over it takes messages out, waits for more, and ends when it is closed.
    """

    def __init__(self) -> None:
        self._messages: deque[worker_service_pb2.WorkRequest] = deque()
        self._changed = threading.Condition()
        self._closed = False
        #: Nothing has been said lately.
        self._quiet = True

    def put(self, message: worker_service_pb2.WorkRequest) -> None:
        """Says something."""
        with self._changed:
            self._messages.append(message)
            self._quiet = False
            self._changed.notify()

    def put_if_quiet(self, message: worker_service_pb2.WorkRequest) -> None:
        """Says something unless something else waits to be said, or was since the last call."""
        with self._changed:
            if self._quiet and not self._messages:
                self._messages.append(message)
                self._changed.notify()
            self._quiet = True

    def close(self) -> None:
        """Nothing more will be said; what waits is still written."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def drain(self) -> list[worker_service_pb2.WorkRequest]:
        """Closes, and takes back what was not written."""
        with self._changed:
            self._closed = True
            left = list(self._messages)
            self._messages.clear()
            self._changed.notify()
            return left

    def __iter__(self) -> Iterator[worker_service_pb2.WorkRequest]:
        return self

    def __next__(self) -> worker_service_pb2.WorkRequest:
        with self._changed:
            while not self._messages:
                if self._closed:
                    raise StopIteration
                self._changed.wait()
            return self._messages.popleft()
