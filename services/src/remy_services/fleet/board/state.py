"""What a board knows, for the modules that change it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from remy_services.fleet.board.counters import Counts
from remy_services.fleet.board.effects import Effects
from remy_services.fleet.board.hedging import Hedges
from remy_services.fleet.board.queue import WorkQueue
from remy_services.fleet.board.records import Lease, Task
from remy_services.fleet.board.settings import BoardSettings
from remy_services.fleet.board.workers import Roster


@dataclass
class BoardState:
    """Everything; nothing of it refers to a clock, a file or a connection."""

    settings: BoardSettings
    next_lease_id: int
    roster: Roster = field(default_factory=Roster)
    queue: WorkQueue = field(default_factory=WorkQueue)
    hedges: Hedges = field(default_factory=Hedges)
    counts: Counts = field(default_factory=Counts)
    effects: Effects = field(default_factory=Effects)
    #: Leases that may still be answered.
    leases: dict[int, Lease] = field(default_factory=dict)
    #: Open tasks that ended workers.
    suspects: dict[Task, None] = field(default_factory=dict)
    #: Workers that get nothing any more: why.
    quarantined: OrderedDict[str, str] = field(default_factory=OrderedDict)

    def want(self, task: Task) -> None:
        """Has the task given out again if it is open and nobody has it."""
        if task.closed:
            return
        if task.active:
            self.queue.take_out(task)
        else:
            self.queue.put_back(task)

    def end_lease(self, lease: Lease, reason: str) -> None:
        """Nobody waits for this copy any more; the task may need another."""
        if lease.active:
            lease.active = False
            self.counts.leases_ended[reason] += 1
            self.want(lease.task)

    def cancel_copies(self, task: Task, reason: str) -> None:
        """Nobody waits for the task any more: its workers need not go on."""
        for lease in task.leases.values():
            if lease.active:
                lease.active = False
                self.counts.leases_ended[reason] += 1
                self.effects.cancelled.setdefault(lease.worker_id, []).append(lease.lease_id)
        self.suspects.pop(task, None)

    def forget_copies(self, task: Task) -> None:
        """The task's evaluation has ended: who has left cannot answer any more."""
        for lease in task.leases.values():
            worker = self.roster.workers.get(lease.worker_id)
            if worker is None or lease.lease_id not in worker.held:
                del self.leases[lease.lease_id]
        task.leases.clear()
