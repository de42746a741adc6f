"""The board that tasks are on: who has which, who gets the next one, and what came of them."""

from __future__ import annotations

from collections.abc import Sequence

from remy_farm.v1 import evaluation_pb2
from remy_services.evaluation import EvaluationProgress, Share
from remy_services.evaluation.partition import Task as Slice
from remy_services.fleet.board import answering, assigning, closing, leaving
from remy_services.fleet.board.counters import BoardSnapshot
from remy_services.fleet.board.effects import Effects
from remy_services.fleet.board.records import EvaluationRecord
from remy_services.fleet.board.settings import BoardSettings
from remy_services.fleet.board.slicing import Slicer
from remy_services.fleet.board.state import BoardState
from remy_services.fleet.board.workers import WorkerFacts


class WorkerQuarantined(Exception):
    """A worker that is quarantined wants to join. One sentence for people."""


class TaskBoard:
    """Requests of many jobs, cut into tasks, and the workers that do them. See the package."""

    def __init__(
        self,
        settings: BoardSettings | None = None,
        *,
        first_lease_id: int = 1,
    ) -> None:
        """An empty board.

        `first_lease_id` should differ from board to board by more than there are tasks, so that a
        late answer to one board means nothing to the next.
        """
        self._state = BoardState(settings or BoardSettings(), first_lease_id)
        self._evaluations = 0

    @property
    def settings(self) -> BoardSettings:
        """What the board goes by."""
        return self._state.settings

    # Evaluations.

    def submit(self, share: Share, request: evaluation_pb2.EvaluationRequest) -> int:
        """A request to evaluate. Returns the number by which its end is told."""
        self._evaluations += 1
        evaluation = EvaluationRecord(self._evaluations, share, request, Slicer(request))
        self._state.queue.add(evaluation)
        job = self._state.queue.job_of(evaluation)
        if job.contradiction is not None:
            closing.fail(self._state, evaluation, job.contradiction)
            job.contradiction = None
        return self._evaluations

    def withdraw(self, evaluation_id: int) -> None:
        """A request is not wanted any more; its end is not told if it was not told yet."""
        self._state.effects.ended.pop(evaluation_id, None)
        evaluation = self._state.queue.evaluations.get(evaluation_id)
        if evaluation is not None:
            closing.close(self._state, evaluation, "withdrawn")

    def progress(self, evaluation_id: int) -> EvaluationProgress | None:
        """How far a request has come; None once it has ended."""
        evaluation = self._state.queue.evaluations.get(evaluation_id)
        if evaluation is None:
            return None
        return EvaluationProgress(
            evaluation.simulations_done, evaluation.simulations, evaluation.simulated_packets
        )

    # Workers.

    def join(self, facts: WorkerFacts, now: float) -> None:
        """A worker is there; it gets nothing before it has credit.

        One of this name that is there still leaves first. Raises WorkerQuarantined.
        """
        why = self._state.quarantined.get(facts.worker_id)
        if why is not None:
            raise WorkerQuarantined(f"worker {facts.worker_id} is quarantined: {why}")
        leaving.join(self._state, facts, now)

    def credit(self, worker_id: str, tasks: int, now: float) -> None:
        """A worker can take so many tasks more than it has. Answering a task makes room for one."""
        worker = self._state.roster.workers.get(worker_id)
        if worker is not None:
            worker.credits += tasks
            self._state.roster.heard(worker, now)
            self._state.roster.file(worker)

    def heartbeat(self, worker_id: str, now: float) -> None:
        """A worker is alive."""
        worker = self._state.roster.workers.get(worker_id)
        if worker is not None:
            self._state.roster.heard(worker, now)

    def say_goodbye(self, worker_id: str) -> None:
        """A worker will leave: it gets nothing any more, but may still answer."""
        leaving.say_goodbye(self._state, worker_id)

    def leave(self, worker_id: str, now: float) -> None:
        """A worker is gone; without a goodbye, what it was doing may be why."""
        leaving.leave(self._state, worker_id, now)

    # Answers; each lease takes one.

    def task(self, lease_id: int) -> tuple[evaluation_pb2.EvaluationRequest, Slice] | None:
        """What a lease is for, to check a result against: the whole request, and the slice of it.

        None if an answer to it changes nothing: there is none that it could be compared with.
        """
        lease = self._state.leases.get(lease_id)
        if lease is None or (lease.task.closed and lease.task.accepted is None):
            return None
        return lease.task.evaluation.request, lease.task.slice

    def complete(
        self,
        worker_id: str,
        lease_id: int,
        outcome: evaluation_pb2.EvaluationOutcome,
        sha256: bytes,
        cpu_seconds: float,
        now: float,
    ) -> None:
        """A result that has passed its checks; `sha256` is of the serialized outcome."""
        answering.complete(self._state, worker_id, lease_id, outcome, sha256, cpu_seconds, now)

    def refuse(self, worker_id: str, lease_id: int, why: str, now: float) -> None:
        """The simulator refuses the task. One sentence for people."""
        answering.refuse(self._state, worker_id, lease_id, why, now)

    def disbelieve(
        self, worker_id: str, lease_id: int, sha256: bytes, why: str, now: float
    ) -> None:
        """An undamaged result that cannot be right."""
        answering.disbelieve(self._state, worker_id, lease_id, sha256, why, now)

    def reject(self, worker_id: str, lease_id: int, what: str, now: float) -> None:
        """A damaged result; in a word or two, for counting: what is wrong with it."""
        answering.reject(self._state, worker_id, lease_id, what, now)

    def give_back(self, worker_id: str, lease_ids: Sequence[int], now: float) -> None:
        """Tasks that the worker will not do."""
        for lease_id in lease_ids:
            answering.give_back(self._state, worker_id, lease_id, now)

    # Time.

    def advance(self, now: float) -> Effects:
        """Ends the leases of silent workers, gives out tasks, and returns all that is to be done.

        To be called after anything was told, and from time to time.
        """
        leaving.expire(self._state, now)
        assigning.assign(self._state, now)
        effects, self._state.effects = self._state.effects, Effects()
        return effects

    # What is seen from outside.

    def has_evaluations(self, job_id: str = "") -> bool:
        """Whether there are open requests: of one job, or at all."""
        if not job_id:
            return bool(self._state.queue.evaluations)
        job = self._state.queue.job(job_id)
        return job is not None and job.evaluations > 0

    def snapshot(self) -> BoardSnapshot:
        """What the board holds now and what it has counted; the counts go on changing."""
        workers = self._state.roster.workers.values()
        evaluations = self._state.queue.evaluations.values()
        return BoardSnapshot(
            counts=self._state.counts,
            workers=len(workers),
            busy_workers=sum(bool(worker.held) for worker in workers),
            silent_workers=sum(worker.silent for worker in workers),
            threads=sum(worker.facts.threads for worker in workers),
            quarantined_workers=len(self._state.quarantined),
            evaluations=len(evaluations),
            tasks_waiting=sum(
                len(each.returned) + len(each.suspected) + self._uncut_tasks(each)
                for each in evaluations
            ),
            tasks_running=sum(lease.active for worker in workers for lease in worker.held.values()),
        )

    def _uncut_tasks(self, evaluation: EvaluationRecord) -> int:
        """About how many tasks of full length are not cut off yet."""
        if evaluation.slicer.exhausted:
            return 0
        rate = self._state.queue.job_of(evaluation).cost.seconds_per_packet
        seconds = evaluation.slicer.packets * rate
        return 1 + int(seconds / self.settings.longest_task_seconds)
