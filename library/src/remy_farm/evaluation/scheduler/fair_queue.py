"""The fair queue: priorities first, and weighted fair shares among equals.

Start-time fair queueing (Goyal, Vin, Cheng 1996): every job has a virtual time, which grows with
the cost of what it was given divided by its weight, and the job that is furthest behind is next. A
job that comes back from a pause begins where the others are, so that a pause saves nothing up.
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

Found = TypeVar("Found")


@dataclass(eq=False, slots=True)
class Job:
    """A job, as long as it has evaluations or its cost is remembered."""

    share: Share
    #: CPU seconds given to it, divided by its weight, on a scale that all jobs share.
    virtual_seconds: float = 0.0
    cost: CostModel = field(default_factory=CostModel)
    #: Its evaluations that are not closed.
    evaluations: int = 0
    #: Those with something to give out, oldest first.
    working: dict[int, EvaluationRecord] = field(default_factory=dict)
    #: Counts changes of its place in line; entries that name another number are void.
    place: int = 0
    #: Two answers to a task of an evaluation that had ended were found to differ.
    contradiction: ResultsDiffer | None = None


class FairOrder:
    """The jobs that have something to give out, in the order of their turns."""

    def __init__(self) -> None:
        self._line: list[tuple[int, float, int, int, Job]] = []
        self._entries = 0
        #: By priority: how far the job has come that was last given something.
        self._reached: defaultdict[int, float] = defaultdict(float)
        #: By priority: the weights of the jobs in line, together.
        self._weights: defaultdict[int, float] = defaultdict(float)

    @property
    def empty(self) -> bool:
        """Whether no job is in line."""
        return not self._weights

    def enter(self, job: Job) -> None:
        """A job has something to give out, and had not."""
        job.virtual_seconds = max(job.virtual_seconds, self._reached[job.share.priority])
        self._weights[job.share.priority] += job.share.weight
        self._put(job)

    def leave(self, job: Job) -> None:
        """A job has nothing to give out any more."""
        job.place += 1
        remaining = self._weights[job.share.priority] - job.share.weight
        if remaining > 1e-9:
            self._weights[job.share.priority] = remaining
        else:
            del self._weights[job.share.priority]

    def charge(self, job: Job, cpu_seconds: float) -> None:
        """A job was given so much; negative to correct an estimate."""
        job.virtual_seconds += cpu_seconds / job.share.weight
        if job.working:
            self._put(job)

    def share_of(self, job: Job) -> float:
        """The part of the fleet that is the job's while all in line stay there."""
        return job.share.weight / max(self._weights[job.share.priority], job.share.weight)

    def first(self, ask: Callable[[Job], Found | None]) -> Found | None:
        """What the first job in line has that `ask` gets something of."""
        passed = []
        try:
            while self._line:
                entry = self._line[0]
                if entry[3] != entry[4].place:
                    heapq.heappop(self._line)
                    continue
                found = ask(entry[4])
                if found is not None:
                    priority, reached = -entry[0], entry[1]
                    self._reached[priority] = max(self._reached[priority], reached)
                    return found
                passed.append(heapq.heappop(self._line))
            return None
        finally:
            for entry in passed:
                heapq.heappush(self._line, entry)

    def _put(self, job: Job) -> None:
        job.place += 1
        self._entries += 1
        heapq.heappush(
            self._line, (-job.share.priority, job.virtual_seconds, self._entries, job.place, job)
        )


# Jobs that pause between two steps are remembered, and so is what their simulations cost.
_JOBS_REMEMBERED = 4096


class WorkQueue:
    """The open evaluations by job, those jobs in line that have something to give out."""

    def __init__(self) -> None:
        self.order = FairOrder()
        self.evaluations: dict[int, EvaluationRecord] = {}
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._undated: list[EvaluationRecord] = []

    def add(self, evaluation: EvaluationRecord) -> None:
        """A new evaluation. Its share is its job's from now on."""
        job = self.remember(evaluation.share)
        if job.working:
            self.order.leave(job)
            job.share = evaluation.share
            self.order.enter(job)
        job.share = evaluation.share
        job.evaluations += 1
        self.evaluations[evaluation.evaluation_id] = evaluation
        self._undated.append(evaluation)
        self.refresh(evaluation)

    def date_arrivals(self, now: float) -> None:
        """What was added since the last call has arrived now."""
        for evaluation in self._undated:
            evaluation.arrived_at = now
        self._undated.clear()

    def remove(self, evaluation: EvaluationRecord) -> None:
        """An evaluation that is closed."""
        self.refresh(evaluation)
        del self.evaluations[evaluation.evaluation_id]
        self.job_of(evaluation).evaluations -= 1

    def job(self, job_id: str) -> Job | None:
        """A job that is remembered."""
        return self._jobs.get(job_id)

    def job_of(self, evaluation: EvaluationRecord) -> Job:
        """An open evaluation's job."""
        return self._jobs[evaluation.share.job_id]

    def put_back(self, task: Task) -> None:
        """A task that is to be given out again, before what was not given out yet."""
        evaluation = task.evaluation
        if task.ended:
            evaluation.returned.pop(task, None)
            evaluation.suspected[task] = None
        else:
            evaluation.returned[task] = None
            evaluation.returned.move_to_end(task, last=False)
        self.refresh(evaluation)

    def take_out(self, task: Task) -> None:
        """A task that is not to be given out now."""
        task.evaluation.returned.pop(task, None)
        task.evaluation.suspected.pop(task, None)
        self.refresh(task.evaluation)

    def refresh(self, evaluation: EvaluationRecord) -> None:
        """Has the job in line if, and only if, there is something to give out."""
        job = self.job_of(evaluation)
        had_work = bool(job.working)
        if evaluation.has_work:
            job.working[evaluation.evaluation_id] = evaluation
        else:
            job.working.pop(evaluation.evaluation_id, None)
        if job.working and not had_work:
            self.order.enter(job)
        elif had_work and not job.working:
            self.order.leave(job)

    def remember(self, share: Share) -> Job:
        """The share's job, from now on if not before."""
        job = self._jobs.get(share.job_id)
        if job is None:
            job = self._jobs[share.job_id] = Job(share)
        self._jobs.move_to_end(share.job_id)
        if len(self._jobs) > _JOBS_REMEMBERED:
            oldest = next((each for each in self._jobs.values() if not each.evaluations), None)
            if oldest is not None and oldest is not job:
                del self._jobs[oldest.share.job_id]
        return job
