"""Where the threads of a worker meet: some bring tasks, some do them, and answers go out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic

from remy_farm.v1 import worker_service_pb2
from remy_workers.messages import returned
from remy_workers.outbox import Outbox
from remy_workers.workload import Tables, Work, Workload

_HEARTBEAT = worker_service_pb2.WorkRequest(heartbeat=worker_service_pb2.Heartbeat())


def _nothing() -> None:
    pass


class Desk(Generic[Tables]):
    """A workload, and the stream that answers go to while there is one.

    May be used from any thread. Results that are done while there is no stream, or that were not
    written before it broke, go to the next one: late, and perhaps still of use.
    """

    def __init__(self, on_work: Callable[[], None] = _nothing) -> None:
        """`on_work` is called when there may be something to take, or to wait for no longer."""
        self._on_work = on_work
        self._workload: Workload[Tables] = Workload()
        self._changed = threading.Condition()
        self._outbox: Outbox | None = None
        self._late: list[worker_service_pb2.WorkRequest] = []

    # For those who talk to the coordinator.

    def open(self, outbox: Outbox, credit: int) -> None:
        """A stream is there, and has said Hello."""
        with self._changed:
            self._outbox = outbox
            for message in self._late:
                outbox.put(message)
            self._late.clear()
            granted = worker_service_pb2.Credit(tasks=credit)
            outbox.put(worker_service_pb2.WorkRequest(credit=granted))

    def shut(self) -> None:
        """The stream is gone. Others have got what had not begun."""
        with self._changed:
            if self._outbox is not None:
                unsaid = self._outbox.drain()
                self._late += [message for message in unsaid if message.HasField("result")]
                self._outbox = None
            self._workload.forget_waiting()

    def receive(self, work: Work[Tables]) -> None:
        """A task has come."""
        with self._changed:
            self._return(self._workload.add(work))
            self._changed.notify_all()
        self._on_work()

    def cancel(self, lease_ids: Sequence[int]) -> int:
        """Nobody wants these any more. Returns how many of them had not begun."""
        with self._changed:
            dropped = self._workload.cancel(lease_ids)
            self._return(dropped)
            return len(dropped)

    def say(self, message: worker_service_pb2.WorkRequest) -> None:
        """Says something of this stream's, if it is still there."""
        with self._changed:
            if self._outbox is not None:
                self._outbox.put(message)

    def beat(self) -> None:
        """The worker is alive, which whatever else it says shows as well."""
        with self._changed:
            if self._outbox is not None:
                self._outbox.put_if_quiet(_HEARTBEAT)

    # For those who do the tasks.

    def take(self) -> Work[Tables]:
        """The next task; waits for one."""
        with self._changed:
            while True:
                work = self._workload.begin()
                if work is not None:
                    return work
                self._changed.wait()

    def take_now(self) -> Work[Tables] | None:
        """The next task, if there is one."""
        with self._changed:
            return self._workload.begin()

    @property
    def is_idle(self) -> bool:
        """Whether no task is being done."""
        with self._changed:
            return self._workload.running == 0

    def hand_in(self, work: Work[Tables], answer: worker_service_pb2.WorkRequest) -> bool:
        """A task is done. Returns whether anybody wants the answer."""
        with self._changed:
            is_wanted = self._workload.end(work.lease_id)
            if not is_wanted:
                self._return([work.lease_id])
            elif self._outbox is not None:
                self._outbox.put(answer)
            elif answer.HasField("result"):
                self._late.append(answer)
            self._changed.notify_all()
        self._on_work()
        return is_wanted

    # For the end.

    def wind_down(self, why: str) -> int:
        """Says goodbye and returns what has not begun. Returns how many tasks these were."""
        with self._changed:
            if self._outbox is not None:
                goodbye = worker_service_pb2.Goodbye(why=why)
                self._outbox.put(worker_service_pb2.WorkRequest(goodbye=goodbye))
            dropped = self._workload.wind_down()
            self._return(dropped)
            return len(dropped)

    def wait_until_done(self, seconds: float) -> None:
        """Returns once no task is being done any more, or after `seconds`."""
        with self._changed:
            self._changed.wait_for(lambda: self._workload.running == 0, seconds)

    def break_off(self, last_word: worker_service_pb2.WorkRequest) -> None:
        """Says one thing more and then nothing; what is not done is not answered."""
        with self._changed:
            if self._outbox is not None:
                self._outbox.put(last_word)
                self._outbox.close()

    def close(self) -> None:
        """Returns what is not done and says nothing more; what was said before is still written."""
        with self._changed:
            self._return(self._workload.give_up())
            if self._outbox is not None:
                self._outbox.close()

    def _return(self, lease_ids: Sequence[int]) -> None:
        if lease_ids and self._outbox is not None:
            self._outbox.put(returned(lease_ids))
