"""The tasks of a worker: those that wait, those that run, and the answers to all of them."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from remy_proto.v1 import evaluation_pb2, worker_service_pb2
from remy_simulator import Cancellation, PreparedRequest

#: Lines of the log that are kept while nobody takes them, and characters of each.
_MOST_LINES = 100
_LONGEST_LINE = 1000
_HEARTBEAT = worker_service_pb2.WorkRequest(heartbeat=worker_service_pb2.Heartbeat())


@dataclass(frozen=True, eq=False)
class Task:
    """A part of an evaluation, under a lease of the coordinator's."""

    lease_id: int
    job_id: str
    #: What it has in common with others of its evaluation, and its own candidates and specimens.
    prepared: PreparedRequest
    part: evaluation_pb2.EvaluationRequest
    trace_parent: str = ""
    #: It is to be refused if it sends more; None: never.
    packet_limit: int | None = None
    #: Ends its simulation within milliseconds, once nobody waits for the result any more.
    cancellation: Cancellation = field(default_factory=Cancellation)


def refusal(
    lease_id: int, why: str, *, over_packet_limit: bool | None = None
) -> worker_service_pb2.WorkRequest:
    """The simulator does not take the task, or has ended it. One sentence."""
    refused = worker_service_pb2.TaskRefused(
        lease_id=lease_id, why=why, over_packet_limit=over_packet_limit
    )
    return worker_service_pb2.WorkRequest(refused=refused)


def returned(lease_ids: Sequence[int]) -> worker_service_pb2.WorkRequest:
    """The worker does not do these tasks, or nobody wants to know what came of them."""
    gone = worker_service_pb2.TasksReturned(lease_ids=lease_ids)
    return worker_service_pb2.WorkRequest(returned=gone)


def interrupt(tasks: Iterable[Task]) -> None:
    """Nobody waits for these any more: their simulations end within milliseconds."""
    for task in tasks:
        task.cancellation.cancel()


def log_line(unix_seconds: float, level: str, text: str) -> worker_service_pb2.WorkRequest:
    """A line of this worker's log, for whoever looks at the job."""
    line = worker_service_pb2.LogLine(
        unix_seconds=unix_seconds, level=level, text=text[:_LONGEST_LINE]
    )
    return worker_service_pb2.WorkRequest(log_line=line)


class SendQueue:
    """Messages for one stream; may be used from any thread.

    Iterating over it takes messages out, waits for more, and ends when it is closed.
    """

    def __init__(self) -> None:
        self._messages: deque[worker_service_pb2.WorkRequest] = deque()
        self._changed = threading.Condition()
        self._closed = False
        # Nothing has been sent since the last heartbeat was due.
        self._quiet = True

    def put(self, message: worker_service_pb2.WorkRequest) -> None:
        """Has a message sent after those before."""
        with self._changed:
            self._messages.append(message)
            self._quiet = False
            self._changed.notify()

    def heartbeat(self) -> None:
        """Sends a sign of life, unless something waits to be sent or was since the last one."""
        with self._changed:
            if self._quiet and not self._messages:
                self._messages.append(_HEARTBEAT)
                self._changed.notify()
            self._quiet = True

    def close(self) -> None:
        """Takes no more messages; those that wait are still sent."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def drain(self) -> list[worker_service_pb2.WorkRequest]:
        """Closes, and takes back what was not sent."""
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
    """First in, first out, from the stream to the simulating threads and back.

    May be used from any thread. Every task is answered once: with a result or a refusal when it is
    done, or by being returned. Results that are done while there is no stream, or that were not
    sent before it broke, go to the next one: late, and perhaps still of use.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.RLock())
        self._waiting: OrderedDict[int, Task] = OrderedDict()
        self._running: dict[int, Task] = {}
        self._stream: SendQueue | None = None
        self._late: list[worker_service_pb2.WorkRequest] = []
        self._lines: deque[worker_service_pb2.WorkRequest] = deque(maxlen=_MOST_LINES)
        self._tells_lines = False
        self._is_draining = False

    # For the thread that talks to the coordinator.

    def attach(self, stream: SendQueue, credit: int) -> None:
        """A stream is there, and has said Hello; it may bring `credit` tasks more."""
        with self._changed:
            self._stream = stream
            for message in self._late:
                stream.put(message)
            self._late.clear()
            granted = worker_service_pb2.Credit(tasks=credit)
            stream.put(worker_service_pb2.WorkRequest(credit=granted))

    def detach(self) -> list[Task]:
        """The stream is gone. Others have got what had not begun. Returns what runs still."""
        with self._changed:
            if self._stream is not None:
                unsent = self._stream.drain()
                self._late += [message for message in unsent if message.HasField("result")]
                self._lines.extend(message for message in unsent if message.HasField("log_line"))
                self._tells_lines = False
                self._stream = None
            self._waiting.clear()
            return list(self._running.values())

    def tell_lines(self) -> None:
        """The coordinator takes lines of the log: those that it has not got, and what comes."""
        with self._changed:
            self._tells_lines = True
            for line in self._lines:
                self.send(line)
            self._lines.clear()

    def put(self, task: Task) -> None:
        """A task has come."""
        with self._changed:
            if self._is_draining:
                self._return([task.lease_id])
                return
            self._waiting[task.lease_id] = task
            self._changed.notify_all()

    def cancel(self, lease_ids: Sequence[int]) -> int:
        """Nobody wants these any more. Returns how many of them had not begun."""
        with self._changed:
            dropped = [each for each in lease_ids if self._waiting.pop(each, None) is not None]
            self._return(dropped)
            for lease_id in lease_ids:
                if lease_id in self._running:
                    self._running[lease_id].cancellation.cancel()
            return len(dropped)

    def send(self, message: worker_service_pb2.WorkRequest) -> None:
        """Sends something of this stream's, if it is still there."""
        with self._changed:
            if self._stream is not None:
                self._stream.put(message)

    def heartbeat(self) -> None:
        """The worker is alive, which whatever else it sends shows as well."""
        with self._changed:
            if self._stream is not None:
                self._stream.heartbeat()

    # For whoever logs.

    def log(self, line: worker_service_pb2.WorkRequest) -> None:
        """Sends a line of the log; the last ones wait for a coordinator that takes them."""
        with self._changed:
            if self._stream is not None and self._tells_lines:
                self._stream.put(line)
            else:
                self._lines.append(line)

    # For the threads that simulate.

    @property
    def running(self) -> int:
        """How many tasks are being simulated."""
        with self._changed:
            return len(self._running)

    def get(self) -> Task:
        """The next task; waits for one."""
        with self._changed:
            while not self._waiting:
                self._changed.wait()
            lease_id, task = self._waiting.popitem(last=False)
            self._running[lease_id] = task
            return task

    def done(self, task: Task, answer: worker_service_pb2.WorkRequest | None) -> bool:
        """A task has ended, with an answer unless it was interrupted. Whether that is wanted."""
        with self._changed:
            if self._running.pop(task.lease_id, None) is None:
                # It has been returned.
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

    # For the end.

    def drain(self, why: str) -> int:
        """Says goodbye and returns what has not begun. Returns how many tasks these were."""
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
        """Returns once no task runs any more, or after `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running, seconds)

    def close(self) -> None:
        """Returns and interrupts what still runs, and sends no more than what waits to be sent."""
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
    """Signs of life of a task queue's stream, from a thread that does nothing else."""

    def __init__(self, beat: Callable[[], None], seconds: float = 1.0) -> None:
        """`seconds` hold until the coordinator has said how often."""
        self._beat = beat
        self.seconds = seconds
        self._never = threading.Event()

    def start(self) -> None:
        """Beats from now on for as long as the process lives."""
        threading.Thread(target=self._run, name="heartbeat", daemon=True).start()

    def _run(self) -> None:
        while not self._never.wait(self.seconds):
            self._beat()
