"""Orders jobs by priority, and divides CPU time among jobs of equal priority by weight.

Start-time fair queueing (Goyal, Vin, Cheng 1996): the virtual time of a job grows by the cost of
each assigned task divided by the job's weight, and the job with the smallest virtual time is next.
When a job has tasks again after a time without any, its virtual time rises to that of the others,
so that it saves up no CPU time while it is idle.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from remy_farm.evaluation.interface import ResultsDiffer, Share
from remy_farm.evaluation.scheduler.records import EvaluationRecord, Task
from remy_farm.evaluation.tasks import CostModel

Taken = TypeVar("Taken")


@dataclass(eq=False, slots=True)
class Job:
    """A job that has open evaluations, or had some recently."""

    share: Share
    #: CPU seconds assigned to the job, divided by its weight, on a scale common to all jobs.
    virtual_seconds: float = 0.0
    cost: CostModel = field(default_factory=CostModel)
    #: Number of open evaluations.
    evaluations: int = 0
    #: Open evaluations that have tasks to assign, oldest first.
    pending: dict[int, EvaluationRecord] = field(default_factory=dict)
    #: Incremented when the job moves in the queue; queue entries with another version are void.
    version: int = 0
    #: Set if answers to a task of an ended evaluation differ; fails the job's next evaluation.
    contradiction: ResultsDiffer | None = None


class FairOrder:
    """A priority queue of the jobs that have tasks to assign."""

    def __init__(self) -> None:
        # A heap of (-priority, virtual seconds, entry number, version of the job, job).
        self._heap: list[tuple[int, float, int, int, Job]] = []
        self._entries = 0
        # By priority: the largest virtual time at which a job was served.
        self._virtual_now: defaultdict[int, float] = defaultdict(float)
        # By priority: the total weight of the jobs in the queue.
        self._weights: defaultdict[int, float] = defaultdict(float)

    @property
    def empty(self) -> bool:
        """Whether the queue has no job."""
        return not self._weights

    def enter(self, job: Job) -> None:
        """Adds a job, which has tasks to assign now."""
        job.virtual_seconds = max(job.virtual_seconds, self._virtual_now[job.share.priority])
        self._weights[job.share.priority] += job.share.weight
        self._put(job)

    def leave(self, job: Job) -> None:
        """Removes a job, which has no more tasks to assign."""
        job.version += 1
        remaining = self._weights[job.share.priority] - job.share.weight
        if remaining > 1e-9:
            self._weights[job.share.priority] = remaining
        else:
            del self._weights[job.share.priority]

    def charge(self, job: Job, cpu_seconds: float) -> None:
        """Charges a job for assigned CPU time. Negative values correct an estimate."""
        job.virtual_seconds += cpu_seconds / job.share.weight
        if job.pending:
            self._put(job)

    def share_of(self, job: Job) -> float:
        """The job's fraction of the workers while the jobs in the queue stay the same."""
        return job.share.weight / max(self._weights[job.share.priority], job.share.weight)

    def first(self, take: Callable[[Job], Taken | None]) -> Taken | None:
        """Calls `take` on the jobs in order, and returns its first result that is not None."""
        skipped = []
        try:
            while self._heap:
                entry = self._heap[0]
                if entry[3] != entry[4].version:
                    heapq.heappop(self._heap)
                    continue
                taken = take(entry[4])
                if taken is not None:
                    priority, virtual_seconds = -entry[0], entry[1]
                    self._virtual_now[priority] = max(self._virtual_now[priority], virtual_seconds)
                    return taken
                skipped.append(heapq.heappop(self._heap))
            return None
        finally:
            for entry in skipped:
                heapq.heappush(self._heap, entry)

    def _put(self, job: Job) -> None:
        job.version += 1
        self._entries += 1
        heapq.heappush(
            self._heap,
            (-job.share.priority, job.virtual_seconds, self._entries, job.version, job),
        )


# Jobs are remembered between two evaluations, because their CostModel and virtual time are needed.
_JOBS_REMEMBERED = 4096


class WorkQueue:
    """The open evaluations, and the queue of the jobs that have tasks to assign."""

    def __init__(self) -> None:
        self.order = FairOrder()
        self.evaluations: dict[int, EvaluationRecord] = {}
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._unstamped: list[EvaluationRecord] = []

    def add(self, evaluation: EvaluationRecord) -> None:
        """Adds a new evaluation. Its share becomes that of its job."""
        job = self.remember(evaluation.share)
        if job.pending:
            self.order.leave(job)
            job.share = evaluation.share
            self.order.enter(job)
        job.share = evaluation.share
        job.evaluations += 1
        self.evaluations[evaluation.evaluation_id] = evaluation
        self._unstamped.append(evaluation)
        self.refresh(evaluation)

    def stamp_arrivals(self, now: float) -> None:
        """Sets the arrival time of the evaluations that were added since the last call."""
        for evaluation in self._unstamped:
            evaluation.arrived_at = now
        self._unstamped.clear()

    def remove(self, evaluation: EvaluationRecord) -> None:
        """Removes a closed evaluation."""
        self.refresh(evaluation)
        del self.evaluations[evaluation.evaluation_id]
        self.job_of(evaluation).evaluations -= 1

    def job(self, job_id: str) -> Job | None:
        """The job with this id; None if it is not remembered."""
        return self._jobs.get(job_id)

    def job_of(self, evaluation: EvaluationRecord) -> Job:
        """The job of an open evaluation."""
        return self._jobs[evaluation.share.job_id]

    def put_back(self, task: Task) -> None:
        """Queues a task to be assigned again, before tasks that have not been assigned yet."""
        evaluation = task.evaluation
        if task.lost_workers:
            evaluation.returned.pop(task, None)
            evaluation.suspected[task] = None
        else:
            evaluation.returned[task] = None
            evaluation.returned.move_to_end(task, last=False)
        self.refresh(evaluation)

    def take_out(self, task: Task) -> None:
        """Removes a task from the tasks to be assigned again."""
        task.evaluation.returned.pop(task, None)
        task.evaluation.suspected.pop(task, None)
        self.refresh(task.evaluation)

    def refresh(self, evaluation: EvaluationRecord) -> None:
        """Puts the evaluation's job into the queue if it has tasks to assign; else takes it out."""
        job = self.job_of(evaluation)
        had_work = bool(job.pending)
        if evaluation.has_work:
            job.pending[evaluation.evaluation_id] = evaluation
        else:
            job.pending.pop(evaluation.evaluation_id, None)
        if job.pending and not had_work:
            self.order.enter(job)
        elif had_work and not job.pending:
            self.order.leave(job)

    def remember(self, share: Share) -> Job:
        """Returns the job of a share, creating it if it is new."""
        job = self._jobs.get(share.job_id)
        if job is None:
            job = self._jobs[share.job_id] = Job(share)
        self._jobs.move_to_end(share.job_id)
        if len(self._jobs) > _JOBS_REMEMBERED:
            oldest = next((each for each in self._jobs.values() if not each.evaluations), None)
            if oldest is not None and oldest is not job:
                del self._jobs[oldest.share.job_id]
        return job
