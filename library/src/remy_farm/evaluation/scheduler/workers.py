"""The worker registry: who has joined, for whom they work, and which of them have room."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from remy_farm.evaluation.scheduler.records import EndedWorker, Lease


@dataclass(frozen=True)
class WorkerFacts:
    """What a worker says of itself."""

    worker_id: str
    #: Threads that it simulates with, at least 1.
    threads: int
    #: Only tasks of this job; empty: of any.
    job_id: str = ""
    #: Of its simulator, for people.
    version: str = ""
    #: Where it runs, as itself calls it: on Kubernetes its pod.
    host: str = ""


@dataclass(eq=False, slots=True)
class Worker:
    """A worker that has joined and not left."""

    facts: WorkerFacts
    heard_at: float
    #: How many more tasks it can take.
    credits: int = 0
    #: Everything that it was given and has not answered, wanted still or not, in this order.
    held: dict[int, Lease] = field(default_factory=dict)
    #: Not heard of for a lease's length.
    silent: bool = False
    #: Why it ends, in a word, once it has announced that.
    goodbye: str = ""
    bad_results: int = 0

    @property
    def serving(self) -> bool:
        """Whether it can be counted on."""
        return not self.silent and not self.goodbye

    @property
    def holds_a_suspect(self) -> bool:
        """Whether one of its tasks has ended workers."""
        return any(lease.active and lease.task.ended for lease in self.held.values())


class WorkerPool:
    """The workers that serve one job only, or all jobs."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        #: Workers with a thread that has nothing to do, longest waiting first.
        self.idle: OrderedDict[str, Worker] = OrderedDict()
        #: Workers whose threads all have something to do and that take a reserve.
        self.spare: OrderedDict[str, Worker] = OrderedDict()
        #: Of the workers that can be counted on.
        self.threads = 0
        #: For how long all of them have had something to do; and whether they have now.
        self.saturated_seconds = 0.0
        self.saturated = False

    def file(self, worker: Worker) -> None:
        """Puts a worker where it belongs now, last in line."""
        self.remove(worker)
        if worker.serving and worker.credits > 0:
            room = self.idle if len(worker.held) < worker.facts.threads else self.spare
            room[worker.facts.worker_id] = worker

    def remove(self, worker: Worker) -> None:
        """Takes a worker out of line."""
        self.idle.pop(worker.facts.worker_id, None)
        self.spare.pop(worker.facts.worker_id, None)


# What was seen so long ago counts for a third of what is seen now.
_LOSSES_REMEMBERED_SECONDS = 3600.0


class WorkerRegistry:
    """All workers, by who they serve and by how long they have been silent."""

    def __init__(self) -> None:
        self.workers: dict[str, Worker] = {}
        self._general = WorkerPool("")
        self._special: dict[str, WorkerPool] = {}
        #: Longest silence first.
        self._heard: OrderedDict[str, Worker] = OrderedDict()
        #: How many ended without notice while others went on, lately, and how long all were there.
        self.losses = self._worker_seconds = 0.0

    def add(self, facts: WorkerFacts, now: float) -> Worker:
        """A worker joins."""
        worker = Worker(facts, heard_at=now)
        self.workers[facts.worker_id] = worker
        self._heard[facts.worker_id] = worker
        pool = self._general
        if facts.job_id:
            pool = self._special.setdefault(facts.job_id, WorkerPool(facts.job_id))
        pool.threads += facts.threads
        return worker

    def remove(self, worker: Worker) -> None:
        """A worker is gone."""
        self._stop_counting(worker)
        pool = self.pool_of(worker)
        pool.remove(worker)
        del self.workers[worker.facts.worker_id]
        self._heard.pop(worker.facts.worker_id, None)
        if pool.job_id and not any(
            other.facts.job_id == pool.job_id for other in self.workers.values()
        ):
            del self._special[pool.job_id]

    def heard(self, worker: Worker, now: float) -> None:
        """A sign of life."""
        worker.heard_at = now
        self._heard[worker.facts.worker_id] = worker
        self._heard.move_to_end(worker.facts.worker_id)
        if worker.silent:
            worker.silent = False
            if worker.serving:
                self.pool_of(worker).threads += worker.facts.threads
            self.file(worker)

    def leaves(self, worker: Worker, why: str) -> None:
        """It takes no more tasks."""
        self._stop_counting(worker)
        worker.goodbye = why
        self.file(worker)

    def take_silent(self, since: float) -> Iterator[Worker]:
        """The workers that have not been heard of since, each once for every silence."""
        while self._heard:
            worker = next(iter(self._heard.values()))
            if worker.heard_at > since:
                return
            del self._heard[worker.facts.worker_id]
            self._stop_counting(worker)
            worker.silent = True
            self.file(worker)
            yield worker

    def file(self, worker: Worker) -> None:
        """Puts a worker in line if it has room."""
        self.pool_of(worker).file(worker)

    def pools(self) -> list[WorkerPool]:
        """The pools with room, those first that serve one job only."""
        return [
            pool for pool in (*self._special.values(), self._general) if pool.idle or pool.spare
        ]

    def pass_time(self, seconds: float) -> None:
        """So much time has passed since `note_saturation`."""
        for pool in self._special.values():
            pool.saturated_seconds += pool.saturated * seconds
        kept = math.exp(-seconds / _LOSSES_REMEMBERED_SECONDS)
        self._worker_seconds = self._worker_seconds * kept + len(self.workers) * seconds
        self.losses *= kept

    def chance_of_losses(self, ended: Collection[EndedWorker]) -> float:
        """That all of these would have ended whatever they did: as others do, each by itself."""
        others = max(0.0, self.losses - len(ended))
        rate = others / self._worker_seconds if others else 0.0
        return math.prod(-math.expm1(-rate * worker.seconds) for worker in ended)

    def note_saturation(self) -> None:
        """Nothing more is given out now: threads that have nothing go on having nothing."""
        for pool in self._special.values():
            pool.saturated = pool.threads > 0 and not pool.idle

    def saturated_seconds(self, job_id: str) -> float | None:
        """For how long all threads that serve one job only have been busy; None: it has none."""
        pool = self._special.get(job_id)
        return None if pool is None else pool.saturated_seconds

    def pool_of(self, worker: Worker) -> WorkerPool:
        """Where a worker belongs."""
        job_id = worker.facts.job_id
        return self._special[job_id] if job_id else self._general

    def threads_for(self, job_id: str) -> int:
        """Threads that may simulate for a job."""
        special = self._special.get(job_id)
        return self._general.threads + (special.threads if special else 0)

    def _stop_counting(self, worker: Worker) -> None:
        if worker.serving:
            self.pool_of(worker).threads -= worker.facts.threads
