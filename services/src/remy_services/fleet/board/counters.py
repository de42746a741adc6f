"""What a board counts, for metrics and for people."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

#: Upper ends of the buckets of task durations, seconds; one more bucket is above all of them.
DURATION_BUCKETS_SECONDS: Final = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)


@dataclass
class Counts:
    """Events since the board was made."""

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
    #: By how they left: "goodbye" or "lost".
    workers_left: Counter[str] = field(default_factory=Counter)
    #: Leases that ended without a good answer, by reason: "lost" (its stream), "goodbye", "silent",
    #: "returned", "bad result", "quarantined", "withdrawn", "done elsewhere".
    leases_ended: Counter[str] = field(default_factory=Counter)
    #: Results that failed their checks, by what was wrong.
    bad_results: Counter[str] = field(default_factory=Counter)
    #: Wall seconds from giving a task out to its result: counts by DURATION_BUCKETS_SECONDS.
    task_durations: list[int] = field(
        default_factory=lambda: [0] * (len(DURATION_BUCKETS_SECONDS) + 1)
    )
    task_duration_seconds: float = 0.0
    #: Wall seconds from when a task could be given out to when it first was: the same.
    queue_times: list[int] = field(
        default_factory=lambda: [0] * (len(DURATION_BUCKETS_SECONDS) + 1)
    )
    queue_seconds: float = 0.0

    def count_duration(self, seconds: float) -> None:
        """A task took so long from its assignment to its result."""
        self.task_durations[bisect_left(DURATION_BUCKETS_SECONDS, seconds)] += 1
        self.task_duration_seconds += seconds

    def count_queue_time(self, seconds: float) -> None:
        """A task waited so long for its first worker."""
        self.queue_times[bisect_left(DURATION_BUCKETS_SECONDS, seconds)] += 1
        self.queue_seconds += seconds


@dataclass(frozen=True)
class BoardSnapshot:
    """What a board holds now, and what it has counted."""

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
