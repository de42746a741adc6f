"""Tracks the workers that have joined: which jobs they serve, and which can take more tasks."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from remy_farm.evaluation.scheduler.records import Lease, LostWorker


@dataclass(frozen=True)
class WorkerFacts:
    """A worker's description of itself."""

    worker_id: str
    #: Number of simulating threads, at least 1.
    threads: int
    #: The only job that it serves; empty if it serves all jobs.
    job_id: str = ""
    #: Version of its simulator, for people.
    version: str = ""
    #: Its host name; on Kubernetes the name of its pod.
    host: str = ""


@dataclass(eq=False, slots=True)
class Worker:
    """A worker that has joined and has not left."""

    facts: WorkerFacts
    last_seen_at: float
    #: Number of further tasks that it can take.
    credits: int = 0
    #: Leases that it has not answered, cancelled ones included, in order of assignment.
    held: dict[int, Lease] = field(default_factory=dict)
    #: Whether it has not been heard from for `lease_seconds`.
    silent: bool = False
    #: Reason of its announced shutdown, in one word; empty if it has not said goodbye.
    goodbye: str = ""
    bad_results: int = 0

    @property
    def serving(self) -> bool:
        """Whether it gets new tasks: it is neither silent nor shutting down."""
        return not self.silent and not self.goodbye

    @property
    def holds_a_suspect(self) -> bool:
        """Whether one of its tasks is suspected of killing workers."""
        return any(lease.active and lease.task.lost_workers for lease in self.held.values())


class WorkerPool:
    """The workers that serve one job, or those that serve all jobs."""

    def __init__(self, job_id: str) -> None:
        #: The job that the workers serve; empty for those that serve all jobs.
        self.job_id = job_id
        #: Workers with an idle thread, in the order in which they became idle.
        self.idle: OrderedDict[str, Worker] = OrderedDict()
        #: Workers without an idle thread that can take further tasks in reserve.
        self.spare: OrderedDict[str, Worker] = OrderedDict()
        #: Threads of the serving workers.
        self.threads = 0
        #: Total time for which all threads have been busy; `saturated`: whether they are now.
        self.saturated_seconds = 0.0
        self.saturated = False

    def requeue(self, worker: Worker) -> None:
        """Moves a worker to the end of the queue that it now belongs to, if any."""
        self.remove(worker)
        if worker.serving and worker.credits > 0:
            room = self.idle if len(worker.held) < worker.facts.threads else self.spare
            room[worker.facts.worker_id] = worker

    def remove(self, worker: Worker) -> None:
        """Takes a worker out of both queues."""
        self.idle.pop(worker.facts.worker_id, None)
        self.spare.pop(worker.facts.worker_id, None)


# Time constant of the exponential average of the rate at which workers are lost.
_LOSS_RATE_SECONDS = 3600.0


class WorkerRegistry:
    """All workers that have joined, in pools by the job they serve."""

    def __init__(self) -> None:
        self.workers: dict[str, Worker] = {}
        self._general = WorkerPool("")
        self._special: dict[str, WorkerPool] = {}
        # Workers that are not silent, in the order in which they were last heard from.
        self._heard: OrderedDict[str, Worker] = OrderedDict()
        #: Workers lost without a goodbye, exponentially averaged as the worker seconds are.
        self.losses = self._worker_seconds = 0.0

    def add(self, facts: WorkerFacts, now: float) -> Worker:
        """Adds a worker that has joined."""
        worker = Worker(facts, last_seen_at=now)
        self.workers[facts.worker_id] = worker
        self._heard[facts.worker_id] = worker
        pool = self._general
        if facts.job_id:
            pool = self._special.setdefault(facts.job_id, WorkerPool(facts.job_id))
        pool.threads += facts.threads
        return worker

    def remove(self, worker: Worker) -> None:
        """Removes a worker that has left."""
        self._stop_counting(worker)
        pool = self.pool_of(worker)
        pool.remove(worker)
        del self.workers[worker.facts.worker_id]
        self._heard.pop(worker.facts.worker_id, None)
        if pool.job_id and not any(
            other.facts.job_id == pool.job_id for other in self.workers.values()
        ):
            del self._special[pool.job_id]

    def touch(self, worker: Worker, now: float) -> None:
        """Records that a worker has been heard from."""
        worker.last_seen_at = now
        self._heard[worker.facts.worker_id] = worker
        self._heard.move_to_end(worker.facts.worker_id)
        if worker.silent:
            worker.silent = False
            if worker.serving:
                self.pool_of(worker).threads += worker.facts.threads
            self.requeue(worker)

    def start_leaving(self, worker: Worker, why: str) -> None:
        """Records that a worker shuts down, so that it gets no more tasks."""
        self._stop_counting(worker)
        worker.goodbye = why
        self.requeue(worker)

    def pop_silent(self, since: float) -> Iterator[Worker]:
        """Yields the workers not heard from after the time `since`, and marks them as silent.

        A worker is yielded once per silence.
        """
        while self._heard:
            worker = next(iter(self._heard.values()))
            if worker.last_seen_at > since:
                return
            del self._heard[worker.facts.worker_id]
            self._stop_counting(worker)
            worker.silent = True
            self.requeue(worker)
            yield worker

    def requeue(self, worker: Worker) -> None:
        """Moves a worker to its place in the queues of its pool; see WorkerPool."""
        self.pool_of(worker).requeue(worker)

    def pools(self) -> list[WorkerPool]:
        """The pools with workers that can take tasks; those that serve one job come first."""
        return [
            pool for pool in (*self._special.values(), self._general) if pool.idle or pool.spare
        ]

    def advance_clock(self, seconds: float) -> None:
        """Accounts for the time that has passed since `update_saturation`."""
        for pool in self._special.values():
            pool.saturated_seconds += pool.saturated * seconds
        decay = math.exp(-seconds / _LOSS_RATE_SECONDS)
        self._worker_seconds = self._worker_seconds * decay + len(self.workers) * seconds
        self.losses *= decay

    def coincidence_probability(self, lost: Collection[LostWorker]) -> float:
        """The probability that all these workers were lost independently of their task.

        It is computed from the rate at which other workers are lost.
        """
        others = max(0.0, self.losses - len(lost))
        rate = others / self._worker_seconds if others else 0.0
        return math.prod(-math.expm1(-rate * worker.seconds) for worker in lost)

    def update_saturation(self) -> None:
        """Records which pools have no idle thread, after all possible tasks were assigned."""
        for pool in self._special.values():
            pool.saturated = pool.threads > 0 and not pool.idle

    def saturated_seconds(self, job_id: str) -> float | None:
        """Total time for which all threads that serve only this job were busy.

        Returns None if there are no such threads.
        """
        pool = self._special.get(job_id)
        return None if pool is None else pool.saturated_seconds

    def pool_of(self, worker: Worker) -> WorkerPool:
        """The pool of a worker."""
        job_id = worker.facts.job_id
        return self._special[job_id] if job_id else self._general

    def threads_for(self, job_id: str) -> int:
        """The number of threads that may simulate for a job."""
        special = self._special.get(job_id)
        return self._general.threads + (special.threads if special else 0)

    def _stop_counting(self, worker: Worker) -> None:
        if worker.serving:
            self.pool_of(worker).threads -= worker.facts.threads
