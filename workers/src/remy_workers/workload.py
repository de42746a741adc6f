"""What a worker has to do: a state machine without threads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from remy_farm.v1 import evaluation_pb2

Tables = TypeVar("Tables")


@dataclass(frozen=True, eq=False)
class Work(Generic[Tables]):
    """A task, with its tables as whoever does it needs them."""

    lease_id: int
    job_id: str
    request: evaluation_pb2.EvaluationRequest
    tables: Tables
    trace_parent: str = ""


class Workload(Generic[Tables]):
    """The tasks that wait and those that are being done.

    Every task is answered once: with a result or a refusal when it is done, or by being returned.
    The methods that return leases return those that are to be answered as returned.
    """

    def __init__(self) -> None:
        self._waiting: OrderedDict[int, Work[Tables]] = OrderedDict()
        #: Being done; True: somebody wants the result.
        self._running: dict[int, bool] = {}
        #: No more tasks are taken.
        self.is_ending = False

    @property
    def running(self) -> int:
        """How many are being done."""
        return len(self._running)

    def add(self, work: Work[Tables]) -> list[int]:
        """A new task."""
        if self.is_ending:
            return [work.lease_id]
        self._waiting[work.lease_id] = work
        return []

    def begin(self) -> Work[Tables] | None:
        """The next task to do; None if none waits."""
        if not self._waiting:
            return None
        lease_id, work = self._waiting.popitem(last=False)
        self._running[lease_id] = True
        return work

    def end(self, lease_id: int) -> bool:
        """A task is done. Whether its result is wanted; else it is to be returned."""
        return self._running.pop(lease_id, False)

    def cancel(self, lease_ids: Iterable[int]) -> list[int]:
        """Results of these are not wanted any more."""
        dropped = []
        for lease_id in lease_ids:
            if self._waiting.pop(lease_id, None) is not None:
                dropped.append(lease_id)
            elif lease_id in self._running:
                self._running[lease_id] = False
        return dropped

    def wind_down(self) -> list[int]:
        """Nothing is to be begun any more."""
        self.is_ending = True
        return self.forget_waiting()

    def forget_waiting(self) -> list[int]:
        """Drops what has not begun; after a lost connection others have it already."""
        dropped = list(self._waiting)
        self._waiting.clear()
        return dropped

    def give_up(self) -> list[int]:
        """What is being done will not be done in time; its end is not waited for."""
        given_up = list(self._running)
        self._running.clear()
        return given_up
