"""The tasks of a worker, waiting and running, and the messages that answer them."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from remy_proto.v1 import evaluation_pb2, worker_service_pb2
from remy_simulator import Cancellation, PreparedRequest

#: Number of log lines kept until the coordinator accepts them, and their maximum length.
_MAX_LINES = 100
_MAX_LINE_LENGTH = 1000
_HEARTBEAT = worker_service_pb2.WorkRequest(heartbeat=worker_service_pb2.Heartbeat())


@dataclass(frozen=True, eq=False)
class Task:
    """A part of an evaluation, leased from the coordinator."""

    lease_id: int
    job_id: str
    #: The part shared with other tasks of the evaluation, and this task's candidates and specimens.
    prepared: PreparedRequest
    part: evaluation_pb2.EvaluationRequest
    trace_parent: str = ""
    #: Reject the task if it simulates more packets; None for no limit.
    packet_limit: int | None = None
    #: Ends the simulation within milliseconds when the result is no longer needed.
    cancellation: Cancellation = field(default_factory=Cancellation)


def refusal(
    lease_id: int, why: str, *, over_packet_limit: bool | None = None
) -> worker_service_pb2.WorkRequest:
    """The message that the simulator rejected the task; `why` is one sentence."""
    refused = worker_service_pb2.TaskRefused(
        lease_id=lease_id, why=why, over_packet_limit=over_packet_limit
    )
    return worker_service_pb2.WorkRequest(refused=refused)


def returned(lease_ids: Sequence[int]) -> worker_service_pb2.WorkRequest:
    """The message that tasks end without a result, as returned to the coordinator."""
    message = worker_service_pb2.TasksReturned(lease_ids=lease_ids)
    return worker_service_pb2.WorkRequest(returned=message)


def interrupt(tasks: Iterable[Task]) -> None:
    """Cancels tasks; their simulations end within milliseconds."""
    for task in tasks:
        task.cancellation.cancel()


def log_line(unix_seconds: float, level: str, text: str) -> worker_service_pb2.WorkRequest:
    """The message with one line of this worker's log."""
    line = worker_service_pb2.LogLine(
        unix_seconds=unix_seconds, level=level, text=text[:_MAX_LINE_LENGTH]
    )
    return worker_service_pb2.WorkRequest(log_line=line)


class SendQueue:
    """The messages to send on one stream. Thread-safe.

    Iteration takes messages out, blocks while there are none, and ends when the queue is closed.
    """

    def __init__(self) -> None:
        self._messages: deque[worker_service_pb2.WorkRequest] = deque()
        self._changed = threading.Condition()
        self._closed = False
        # Whether nothing was sent since the last heartbeat was due.
        self._quiet = True

    def put(self, message: worker_service_pb2.WorkRequest) -> None:
        """Appends a message."""
        with self._changed:
            self._messages.append(message)
            self._quiet = False
            self._changed.notify()

    def heartbeat(self) -> None:
        """Appends a heartbeat, unless another message has been sent since the last one."""
        with self._changed:
            if self._quiet and not self._messages:
                self._messages.append(_HEARTBEAT)
                self._changed.notify()
            self._quiet = True

    def close(self) -> None:
        """Ends the queue after the messages that it already contains."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def drain(self) -> list[worker_service_pb2.WorkRequest]:
        """Closes the queue and returns the unsent messages."""
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


class TaskQueue:
    """A FIFO queue of tasks from the stream to the simulation threads, and of answers back.

    Thread-safe. Every task is answered once: with a result, with a rejection, or by being returned.
    Results that finish without a stream, or were unsent when it broke, are sent on the next stream,
    since they may still be of use.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._waiting: OrderedDict[int, Task] = OrderedDict()
        self._running: dict[int, Task] = {}
        self._stream: SendQueue | None = None
        self._late: list[worker_service_pb2.WorkRequest] = []
        self._lines: deque[worker_service_pb2.WorkRequest] = deque(maxlen=_MAX_LINES)
        self._sends_lines = False
        self._is_draining = False

    # Called by the thread that communicates with the coordinator.

    def attach(self, stream: SendQueue, credit: int) -> None:
        """Uses a stream that has sent Hello, and grants it a credit of tasks."""
        with self._changed:
            self._stream = stream
            for message in self._late:
                stream.put(message)
            self._late.clear()
            granted = worker_service_pb2.Credit(tasks=credit)
            stream.put(worker_service_pb2.WorkRequest(credit=granted))

    def detach(self) -> list[Task]:
        """Forgets the broken stream and the waiting tasks, whose leases end with it.

        Returns the tasks that are still running.
        """
        with self._changed:
            if self._stream is not None:
                unsent = self._stream.drain()
                self._late += [message for message in unsent if message.HasField("result")]
                self._lines.extend(message for message in unsent if message.HasField("log_line"))
                self._sends_lines = False
                self._stream = None
            self._waiting.clear()
            return list(self._running.values())

    def enable_log_lines(self) -> None:
        """Sends the kept log lines, and later ones as they come."""
        with self._changed:
            self._sends_lines = True
            for line in self._lines:
                self.send(line)
            self._lines.clear()

    def put(self, task: Task) -> None:
        """Appends a task, or returns it to the coordinator while draining."""
        with self._changed:
            if self._is_draining:
                self._return([task.lease_id])
                return
            self._waiting[task.lease_id] = task
            self._changed.notify_all()

    def cancel(self, lease_ids: Sequence[int]) -> int:
        """Cancels tasks. Returns how many of them had not started."""
        with self._changed:
            dropped = [each for each in lease_ids if self._waiting.pop(each, None) is not None]
            self._return(dropped)
            for lease_id in lease_ids:
                if lease_id in self._running:
                    self._running[lease_id].cancellation.cancel()
            return len(dropped)

    def send(self, message: worker_service_pb2.WorkRequest) -> None:
        """Sends a message that belongs to the present stream; drops it without a stream."""
        with self._changed:
            if self._stream is not None:
                self._stream.put(message)

    def heartbeat(self) -> None:
        """Sends a heartbeat on the stream, if there is one and it has been quiet."""
        with self._changed:
            if self._stream is not None:
                self._stream.heartbeat()

    # Called by the log handler.

    def log(self, line: worker_service_pb2.WorkRequest) -> None:
        """Sends a log line, or keeps it until the coordinator accepts log lines."""
        with self._changed:
            if self._stream is not None and self._sends_lines:
                self._stream.put(line)
            else:
                self._lines.append(line)

    # Called by the simulation threads.

    @property
    def running(self) -> int:
        """The number of tasks that are being simulated."""
        with self._changed:
            return len(self._running)

    def get(self) -> Task:
        """Takes the next task; blocks until there is one."""
        with self._changed:
            while not self._waiting:
                self._changed.wait()
            lease_id, task = self._waiting.popitem(last=False)
            self._running[lease_id] = task
            return task

    def done(self, task: Task, answer: worker_service_pb2.WorkRequest | None) -> bool:
        """Records the end of a task, with its answer unless it was interrupted.

        Returns whether the answer is still needed.
        """
        with self._changed:
            if self._running.pop(task.lease_id, None) is None:
                # The task has already been returned.
                return False
            self._changed.notify_all()
            if answer is None or task.cancellation.cancelled:
                self._return([task.lease_id])
                return False
            if self._stream is not None:
                self._stream.put(answer)
            elif answer.HasField("result"):
                self._late.append(answer)
            return True

    # Called during shutdown.

    def drain(self, why: str) -> int:
        """Sends Goodbye and returns the waiting tasks to the coordinator. Returns their number."""
        with self._changed:
            self._is_draining = True
            if self._stream is not None:
                goodbye = worker_service_pb2.Goodbye(why=why)
                self._stream.put(worker_service_pb2.WorkRequest(goodbye=goodbye))
            dropped = list(self._waiting)
            self._waiting.clear()
            self._return(dropped)
            return len(dropped)

    def join(self, seconds: float) -> None:
        """Waits until no task is running, for at most `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running, seconds)

    def close(self) -> None:
        """Interrupts the running tasks, returns them to the coordinator, and closes the stream."""
        with self._changed:
            self._return(list(self._running))
            interrupt(self._running.values())
            self._running.clear()
            if self._stream is not None:
                self._stream.close()

    def _return(self, lease_ids: Sequence[int]) -> None:
        if lease_ids and self._stream is not None:
            self._stream.put(returned(lease_ids))


class Heartbeat:
    """A thread that calls `beat` at a regular interval."""

    def __init__(self, beat: Callable[[], None], seconds: float = 1.0) -> None:
        """`seconds` is the interval until the coordinator sets another."""
        self._beat = beat
        self.seconds = seconds
        self._never = threading.Event()

    def start(self) -> None:
        """Starts the thread, which runs for the lifetime of the process."""
        threading.Thread(target=self._run, name="heartbeat", daemon=True).start()

    def _run(self) -> None:
        while not self._never.wait(self.seconds):
            self._beat()
