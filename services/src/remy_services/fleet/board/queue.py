"""What there is to give out, and whose turn it is."""

from __future__ import annotations

from collections import OrderedDict

from remy_services.evaluation import Share
from remy_services.fleet.board.fairness import FairOrder, Job
from remy_services.fleet.board.records import EvaluationRecord, Task

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
        job = self._remember(evaluation.share)
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

    def _remember(self, share: Share) -> Job:
        job = self._jobs.get(share.job_id)
        if job is None:
            job = self._jobs[share.job_id] = Job(share)
        self._jobs.move_to_end(share.job_id)
        if len(self._jobs) > _JOBS_REMEMBERED:
            oldest = next((each for each in self._jobs.values() if not each.evaluations), None)
            if oldest is not None and oldest is not job:
                del self._jobs[oldest.share.job_id]
        return job
