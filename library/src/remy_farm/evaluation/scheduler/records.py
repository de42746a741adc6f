"""The scheduler's settings, effects and counts, and its records of tasks and leases."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from remy_farm.evaluation.interface import Share
from remy_farm.evaluation.tasks import Slicer
from remy_proto.v1 import evaluation_pb2
from remy_simulator.columns import Slice, Slicing


@dataclass(frozen=True)
class SchedulerSettings:
    """What the scheduler goes by. Times are seconds; CPU seconds where a task's length is meant."""

    #: How long a worker that is not heard of keeps its leases.
    lease_seconds: float = 30.0
    #: No task is meant to take longer; one that is lost is cheap.
    longest_task_seconds: float = 1.0
    #: No task is meant to be shorter, since sending one costs as much as simulating for a
    #: millisecond; no longer, since a step ends with the thread that has the last one.
    shortest_task_seconds: float = 0.008
    #: What handing a task out and hearing its result takes here. While every thread is given one,
    #: none is meant to end: tasks for many threads are no shorter than that takes.
    handling_seconds: float = 0.0005
    #: How many tasks a thread would get if all were as long as the next one. Tasks get shorter
    #: towards the end of a request, so that threads end it together.
    tasks_per_thread: float = 2.0
    #: A running task is given to an idle worker too once it has run for `hedge_seconds` plus
    #: `hedge_factor` times what it was expected to take.
    hedge_seconds: float = 0.5
    hedge_factor: float = 2.0
    #: At most so many workers have one task at a time.
    copies: int = 3
    #: A task that ended so many workers is given up, unless as many would have been lost without it
    #: with more than this chance, at the rate at which workers are lost;
    ended_workers: int = 3
    chance_of_losses: float = 1e-6
    #: and one that ended so many in any case.
    most_ended_workers: int = 12
    #: A task that was late when its worker left is divided into so many.
    pieces: int = 16
    #: Who was silent for so long before its connection broke went with its machine: a process that
    #: ends alone is missed at once.
    sign_of_life_seconds: float = 10.0
    #: A worker that sent so many results that fail their checks gets no more tasks.
    bad_results: int = 3


@dataclass(frozen=True, slots=True)
class Assignment:
    """A worker is to do a task."""

    worker_id: str
    lease_id: int
    #: Whose it is.
    share: Share
    evaluation_id: int
    slice: Slice
    #: Of all of the evaluation's request; the task is the slice of it.
    slicing: Slicing

    @property
    def whole(self) -> evaluation_pb2.EvaluationRequest:
        """All of the evaluation's request, packed."""
        return self.slicing.request


@dataclass(frozen=True, slots=True)
class Completion:
    """An evaluation is done."""

    #: The outcomes of slices that cover the request once.
    parts: list[tuple[Slice, evaluation_pb2.EvaluationOutcome]]
    cpu_seconds: float
    workers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Quarantine:
    """An evaluation failed because a part of it kept ending its workers."""

    #: That part as a request of its own, to reproduce it with.
    request: evaluation_pb2.EvaluationRequest
    workers: tuple[str, ...]


@dataclass(slots=True)
class Effects:
    """What is to be done: in any order, except that a task is assigned before it is cancelled."""

    assignments: list[Assignment] = field(default_factory=list)
    #: By worker: leases whose answers nobody waits for any more.
    cancelled: dict[str, list[int]] = field(default_factory=dict)
    #: By worker that gets no more tasks: why, in one sentence.
    expelled: dict[str, str] = field(default_factory=dict)
    #: By evaluation: how it ended. The errors are those of SharedEvaluator.
    ended: dict[int, Completion | Quarantine | Exception] = field(default_factory=dict)


#: Upper ends of the buckets of task durations, seconds; one more bucket is above all of them.
DURATION_BUCKETS_SECONDS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25),
    *(0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)


@dataclass
class Durations:
    """A histogram of wall seconds."""

    #: How many there were by DURATION_BUCKETS_SECONDS, and their sum.
    counts: list[int] = field(default_factory=lambda: [0] * (len(DURATION_BUCKETS_SECONDS) + 1))
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Something took so long."""
        self.counts[bisect_left(DURATION_BUCKETS_SECONDS, seconds)] += 1
        self.seconds += seconds


@dataclass
class Counts:
    """Events since the scheduler was made, for metrics and for people."""

    tasks_assigned: int = 0
    tasks_done: int = 0
    simulations_done: int = 0
    cpu_seconds: float = 0.0
    #: Answers that changed nothing: the task was done already, or its request closed.
    duplicate_results: int = 0
    #: Answers that name a lease which the worker never had, or has answered.
    unknown_leases: int = 0
    hedged_tasks: int = 0
    quarantined_workers: int = 0
    quarantined_tasks: int = 0
    workers_joined: int = 0
    #: By how they left: as they said ("idle", "signal", "spot_interruption", or another "goodbye"),
    #: "lost" (its connection), "silent" before that, or "quarantined".
    workers_left: Counter[str] = field(default_factory=Counter)
    #: By job: workers that left without a goodbye while they had something of it.
    workers_lost: Counter[str] = field(default_factory=Counter)
    #: Leases that ended without a good answer, by reason: "lost" (its stream), "goodbye", "silent",
    #: "returned", "bad result", "quarantined", "withdrawn", "done elsewhere", "divided".
    leases_ended: Counter[str] = field(default_factory=Counter)
    #: Results that failed their checks, by what was wrong.
    bad_results: Counter[str] = field(default_factory=Counter)
    #: From giving a task out to its result.
    task_durations: Durations = field(default_factory=Durations)
    #: From when a task could be given out to when it first was.
    queue_times: Durations = field(default_factory=Durations)


@dataclass(frozen=True)
class SchedulerSnapshot:
    """What a scheduler holds now, and what it has counted."""

    counts: Counts
    workers: int
    busy_workers: int
    silent_workers: int
    threads: int
    quarantined_workers: int
    evaluations: int
    #: Tasks that can be given out: those that are back, and an estimate of those not cut yet.
    tasks_waiting: int
    tasks_running: int


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
    #: From when on it has taken much longer than it was expected to.
    late_at: float
    #: False once nobody waits for the answer: the task is done, or the copy is counted as lost.
    active: bool = True


@dataclass(slots=True)
class EndedWorker:
    """One that ended without notice while it had a task."""

    #: Where it ran, if somebody is asked how it ended and has not said so; empty: it counts.
    host: str
    #: For how long it had the task, or would have had; 0 if it is known to have crashed in itself.
    seconds: float


@dataclass(eq=False, slots=True)
class Task:
    """A slice of a request."""

    evaluation: EvaluationRecord
    slice: Slice
    #: Expected packets (evaluation.tasks).
    packets: float
    #: Copies that may still be answered.
    leases: dict[int, Lease] = field(default_factory=dict)
    #: Workers that ended without notice while they had it, by name.
    ended: dict[str, EndedWorker] = field(default_factory=dict)
    #: When the last of them was found to have ended.
    ended_at: float = -math.inf
    #: SHA-256 of intact results that cannot be right, and which worker gave each.
    impossible: dict[bytes, str] = field(default_factory=dict)
    #: The answer that holds.
    accepted: Answer | None = None
    #: Whether pieces of it are done in its place.
    divided: bool = False

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
        return self.accepted is not None or self.divided or self.evaluation.closed

    def pieces(self, most: int) -> list[Task]:
        """Up to so many tasks that cover it, cut along the longer side."""
        rows, columns = self.slice.candidates, self.slice.specimens
        longer = max(columns, rows, key=len)
        number = min(most, len(longer))
        ends = [len(longer) * piece // number for piece in range(number + 1)]
        cuts = [longer[first:end] for first, end in pairwise(ends)]
        slices = [Slice(rows, cut) if longer is columns else Slice(cut, columns) for cut in cuts]
        packets = self.packets / self.slice.simulations
        return [Task(self.evaluation, each, packets * each.simulations) for each in slices]


@dataclass(eq=False, slots=True)
class EvaluationRecord:
    """A request on its way to its outcome."""

    evaluation_id: int
    share: Share
    slicing: Slicing
    #: By specimen (evaluation.tasks).
    stated_packets: NDArray[np.float64]
    slicer: Slicer
    #: Simulations of one specimen under one candidate, in all.
    simulations: int
    #: When the scheduler first looked for workers for it.
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
    def request(self) -> evaluation_pb2.EvaluationRequest:
        """All of it, packed."""
        return self.slicing.request

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
