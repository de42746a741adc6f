"""What a board keeps of evaluations, their tasks, and every copy of a task that a worker has."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, field

from remy_farm.v1 import evaluation_pb2
from remy_services.evaluation import Share
from remy_services.evaluation.partition import Task as Slice
from remy_services.fleet.board.slicing import Slicer


@dataclass(frozen=True, slots=True)
class Answer:
    """What a worker says of a task."""

    worker_id: str
    #: Of the worker's simulator, for people.
    version: str
    #: Equal where answers are equal.
    key: bytes
    #: None if the simulator refuses the task.
    outcome: evaluation_pb2.EvaluationOutcome | None


@dataclass(eq=False, slots=True)
class Lease:
    """A copy of a task that a worker has."""

    lease_id: int
    task: Task
    worker_id: str
    issued_at: float
    #: CPU seconds that the task was expected to take.
    seconds: float
    #: False once nobody waits for the answer: the task is done, or the copy is counted as lost.
    active: bool = True


@dataclass(eq=False, slots=True)
class Task:
    """A slice of a request."""

    evaluation: EvaluationRecord
    slice: Slice
    #: Expected packets (board.cost).
    packets: float
    #: Copies that may still be answered.
    leases: dict[int, Lease] = field(default_factory=dict)
    #: Workers that ended without notice while they had it.
    ended: set[str] = field(default_factory=set)
    #: When the last of them was found to have ended.
    ended_at: float = -math.inf
    #: SHA-256 of intact results that cannot be right, and which worker gave each.
    impossible: dict[bytes, str] = field(default_factory=dict)
    #: The answer that holds.
    accepted: Answer | None = None

    @property
    def active(self) -> int:
        """Copies whose answer is waited for."""
        return sum(lease.active for lease in self.leases.values())

    def is_with(self, worker_id: str) -> bool:
        """Whether this worker's answer is waited for."""
        return any(lease.active and lease.worker_id == worker_id for lease in self.leases.values())

    @property
    def closed(self) -> bool:
        """Whether no answer is waited for any more."""
        return self.accepted is not None or self.evaluation.closed


@dataclass(eq=False, slots=True)
class EvaluationRecord:
    """A request on its way to its outcome."""

    evaluation_id: int
    share: Share
    request: evaluation_pb2.EvaluationRequest
    slicer: Slicer
    #: When the board first looked for workers for it.
    arrived_at: float = 0.0
    #: Tasks that anybody may do, lost before: the next to be given out.
    returned: OrderedDict[Task, None] = field(default_factory=OrderedDict)
    #: Tasks that may end a worker, which not everybody may do.
    suspected: dict[Task, None] = field(default_factory=dict)
    #: Tasks given out at least once and not done.
    open: dict[Task, None] = field(default_factory=dict)
    done: dict[Task, None] = field(default_factory=dict)
    #: Finished, failed or withdrawn.
    closed: bool = False
    simulations_done: int = 0
    simulated_packets: int = 0
    cpu_seconds: float = 0.0
    workers: set[str] = field(default_factory=set)

    @property
    def simulations(self) -> int:
        """Simulations of one specimen under one candidate, in all."""
        return len(self.request.candidates) * len(self.request.specimens)

    @property
    def has_work(self) -> bool:
        """Whether there is something to give out."""
        return not self.closed and bool(
            self.returned or self.suspected or not self.slicer.exhausted
        )

    @property
    def complete(self) -> bool:
        """Whether every slice is done."""
        return self.slicer.exhausted and not self.open
