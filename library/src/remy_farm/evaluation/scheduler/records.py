"""Data types of the scheduler: settings, effects, counts, and records of tasks and leases."""

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
    """Settings of the scheduler. Times are in seconds; lengths of tasks are in CPU seconds."""

    #: Time after which a silent worker loses its leases.
    lease_seconds: float = 30.0
    #: Upper bound of the intended length of a task, so that losing a task is cheap.
    longest_task_seconds: float = 1.0
    #: Lower bound of the intended length of a task. Sending a task costs as much as simulating for
    #: a millisecond; but a step ends when the last thread finishes, so tasks should not be longer.
    shortest_task_seconds: float = 0.008
    #: Time that the coordinator needs to send a task and receive its result. With many threads,
    #: tasks are at least as long as handling one task per thread takes.
    handling_seconds: float = 0.0005
    #: The remaining work is divided into this many tasks per thread. Tasks therefore become shorter
    #: towards the end of a request, so that all threads finish at about the same time.
    tasks_per_thread: float = 2.0
    #: A task is late, and is assigned to an idle worker as well, when it has run for
    #: `hedge_seconds` plus `hedge_factor` times its expected duration.
    hedge_seconds: float = 0.5
    hedge_factor: float = 2.0
    #: Maximum number of workers that have the same task at a time.
    maximum_copies: int = 3
    #: A task is quarantined as poison once it has lost this many workers, unless the probability
    #: that these losses are a coincidence is above `coincidence_probability`.
    poison_losses: int = 3
    coincidence_probability: float = 1e-6
    #: A task that has lost this many workers is quarantined in any case.
    maximum_poison_losses: int = 12
    #: Number of pieces into which a task is divided that was late when its worker left.
    pieces_per_task: int = 16
    #: If a worker was silent for longer than this before its connection broke, its machine was
    #: lost. The connection of a process that is killed breaks at once.
    recent_contact_seconds: float = 10.0
    #: A worker is quarantined after this many results that failed their checks.
    bad_results: int = 3


@dataclass(frozen=True, slots=True)
class Assignment:
    """Assigns a task, a slice of an evaluation's request, to a worker."""

    worker_id: str
    lease_id: int
    #: Share of the job that the evaluation belongs to.
    share: Share
    evaluation_id: int
    slice: Slice
    #: Cuts slices of the evaluation's request.
    slicing: Slicing

    @property
    def whole(self) -> evaluation_pb2.EvaluationRequest:
        """The evaluation's whole request, packed."""
        return self.slicing.request


@dataclass(frozen=True, slots=True)
class Completion:
    """The successful end of an evaluation."""

    #: Outcomes of slices that together cover the request once.
    parts: list[tuple[Slice, evaluation_pb2.EvaluationOutcome]]
    cpu_seconds: float
    workers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The end of an evaluation that failed because of a poison task, which killed its workers."""

    #: The task as a request of its own, for reproducing the failure.
    request: evaluation_pb2.EvaluationRequest
    workers: tuple[str, ...]


@dataclass(slots=True)
class Effects:
    """Actions for the caller to carry out, in any order but assignments before cancellations."""

    assignments: list[Assignment] = field(default_factory=list)
    #: Cancelled leases by worker.
    cancelled: dict[str, list[int]] = field(default_factory=dict)
    #: The reason, in one sentence, by quarantined worker, which is to be disconnected.
    expelled: dict[str, str] = field(default_factory=dict)
    #: Results by evaluation that has ended. The errors are those of SharedEvaluator.
    ended: dict[int, Completion | Quarantine | Exception] = field(default_factory=dict)


#: Upper bounds of the buckets of durations, seconds; one more bucket holds longer durations.
DURATION_BUCKETS_SECONDS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25),
    *(0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)


@dataclass
class Durations:
    """A histogram of durations in wall clock seconds."""

    #: Counts per bucket of DURATION_BUCKETS_SECONDS, and the sum of all durations.
    counts: list[int] = field(default_factory=lambda: [0] * (len(DURATION_BUCKETS_SECONDS) + 1))
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Adds a duration."""
        self.counts[bisect_left(DURATION_BUCKETS_SECONDS, seconds)] += 1
        self.seconds += seconds


@dataclass
class Counts:
    """Counters of events since the scheduler was created."""

    tasks_assigned: int = 0
    tasks_done: int = 0
    simulations_done: int = 0
    cpu_seconds: float = 0.0
    #: Results for tasks that were already done, or of evaluations that were closed.
    duplicate_results: int = 0
    #: Answers that name a lease that the worker never had or has already answered.
    unknown_leases: int = 0
    hedged_tasks: int = 0
    quarantined_workers: int = 0
    quarantined_tasks: int = 0
    workers_joined: int = 0
    #: By reason: the one of the worker's goodbye ("idle", "signal", "spot_interruption",
    #: "goodbye"), "lost" (connection lost), "silent" (connection lost after a silence), or
    #: "quarantined".
    workers_left: Counter[str] = field(default_factory=Counter)
    #: Workers that left without a goodbye while they had tasks of a job, by job.
    workers_lost: Counter[str] = field(default_factory=Counter)
    #: Leases that ended without a good answer, by reason: "lost" (connection), "goodbye", "silent",
    #: "returned", "bad result", "quarantined", "withdrawn", "done elsewhere", "divided".
    leases_ended: Counter[str] = field(default_factory=Counter)
    #: Results that failed their checks, by the failure.
    bad_results: Counter[str] = field(default_factory=Counter)
    #: Times from the assignment of a task to its result.
    task_durations: Durations = field(default_factory=Durations)
    #: Times from the arrival of an evaluation to the first assignment of each task.
    queue_times: Durations = field(default_factory=Durations)


@dataclass(frozen=True)
class SchedulerSnapshot:
    """The present state of a scheduler, with its counters."""

    counts: Counts
    workers: int
    busy_workers: int
    silent_workers: int
    threads: int
    quarantined_workers: int
    evaluations: int
    #: Tasks to be assigned: returned ones, and an estimate of those that are not cut yet.
    tasks_waiting: int
    tasks_running: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A worker's answer to a task: an outcome or a refusal."""

    worker_id: str
    #: Version of the worker's simulator, for people.
    version: str
    #: Hash of the answer; equal answers have equal keys.
    key: bytes
    #: None if the simulator refused the task.
    outcome: evaluation_pb2.EvaluationOutcome | None


@dataclass(eq=False, slots=True)
class Lease:
    """A worker's lease on a copy of a task."""

    lease_id: int
    task: Task
    worker_id: str
    issued_at: float
    #: Expected length of the task, CPU seconds.
    seconds: float
    #: Time from which the task counts as late.
    late_at: float
    #: Whether the answer is awaited. False if the task is done or the worker counts as lost.
    active: bool = True


@dataclass(slots=True)
class LostWorker:
    """A worker that was lost without a goodbye while it had a task."""

    #: Its host, while it is not known whether the worker crashed or its machine was lost. Empty if
    #: the worker counts as killed by its task.
    host: str
    #: How long it had the task, at least the task's expected length; 0 if it is known to have
    #: crashed.
    seconds: float


@dataclass(eq=False, slots=True)
class Task:
    """A slice of an evaluation's request, which workers simulate."""

    evaluation: EvaluationRecord
    slice: Slice
    #: Expected packets (see evaluation.tasks).
    packets: float
    #: Leases that may still be answered, by id.
    leases: dict[int, Lease] = field(default_factory=dict)
    #: Workers that were lost while they had the task, by name.
    lost_workers: dict[str, LostWorker] = field(default_factory=dict)
    #: When the last of them was lost.
    last_loss_at: float = -math.inf
    #: Workers by the SHA-256 of their undamaged but implausible results.
    implausible: dict[bytes, str] = field(default_factory=dict)
    #: The accepted answer.
    accepted: Answer | None = None
    #: Whether the task was replaced by pieces of it.
    divided: bool = False

    @property
    def active(self) -> int:
        """The number of leases whose answer is awaited."""
        return sum(lease.active for lease in self.leases.values())

    def is_with(self, worker_id: str) -> bool:
        """Whether an answer of this worker is awaited."""
        return any(lease.active and lease.worker_id == worker_id for lease in self.leases.values())

    @property
    def closed(self) -> bool:
        """Whether no answer is awaited any more."""
        return self.accepted is not None or self.divided or self.evaluation.closed

    def pieces(self, maximum: int) -> list[Task]:
        """Divides the task along its longer side into at most `maximum` tasks."""
        rows, columns = self.slice.candidates, self.slice.specimens
        longer = max(columns, rows, key=len)
        number = min(maximum, len(longer))
        ends = [len(longer) * piece // number for piece in range(number + 1)]
        cuts = [longer[first:end] for first, end in pairwise(ends)]
        slices = [Slice(rows, cut) if longer is columns else Slice(cut, columns) for cut in cuts]
        packets = self.packets / self.slice.simulations
        return [Task(self.evaluation, each, packets * each.simulations) for each in slices]


@dataclass(eq=False, slots=True)
class EvaluationRecord:
    """An evaluation in progress."""

    evaluation_id: int
    share: Share
    slicing: Slicing
    #: Nominal packets per specimen (see evaluation.tasks).
    nominal_packets: NDArray[np.float64]
    slicer: Slicer
    #: Number of simulations: candidates times specimens.
    simulations: int
    #: Time of the first `advance` after its submission.
    arrived_at: float = 0.0
    #: Tasks to be assigned again, before tasks that are not cut yet.
    returned: OrderedDict[Task, None] = field(default_factory=OrderedDict)
    #: Tasks to be assigned again that are suspected of killing workers.
    suspected: dict[Task, None] = field(default_factory=dict)
    #: Tasks that were assigned at least once and are not done.
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
        """The whole request, packed."""
        return self.slicing.request

    @property
    def has_work(self) -> bool:
        """Whether there are tasks to assign."""
        return not self.closed and bool(
            self.returned or self.suspected or not self.slicer.exhausted
        )

    @property
    def complete(self) -> bool:
        """Whether every slice is done."""
        return self.slicer.exhausted and not self.open
