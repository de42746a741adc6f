"""Where the threads of a worker meet: some bring tasks, some do them, and answers go out."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from remy_farm.v1 import worker_service_pb2
from remy_workers.outbox import Outbox
from remy_workers.workload import Work, Workload

_HEARTBEAT = worker_service_pb2.WorkRequest(heartbeat=worker_service_pb2.Heartbeat())


class Desk:
    """A workload, and the stream that answers go to while there is one.

    May be used from any thread. Results that are done while there is no stream, or that were not
    written before it broke, go to the next one: late, and perhaps still of use.
    """

    def __init__(self) -> None:
        self._workload = Workload()
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

    def receive(self, work: Work) -> None:
        """A task has come."""
        with self._changed:
            self._return(self._workload.add(work))
            self._changed.notify_all()

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

    def take(self) -> Work:
        """The next task; waits for one."""
        with self._changed:
            while True:
                work = self._workload.begin()
                if work is not None:
                    return work
                self._changed.wait()

    def hand_in(self, work: Work, answer: worker_service_pb2.WorkRequest) -> bool:
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

    def close(self) -> None:
        """Returns what is not done and says nothing more; what was said before is still written."""
        with self._changed:
            self._return(self._workload.give_up())
            if self._outbox is not None:
                self._outbox.close()

    def _return(self, lease_ids: Sequence[int]) -> None:
        if lease_ids and self._outbox is not None:
            returned = worker_service_pb2.TasksReturned(lease_ids=lease_ids)
            self._outbox.put(worker_service_pb2.WorkRequest(returned=returned))
