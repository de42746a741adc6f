"""Simulates workers that fail in many ways, on a simulated clock, for tests of the scheduler."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, field

from library.tests.evaluation.requests import numbered_outcome, numbered_request, slice_outcome
from remy_farm.evaluation.interface import ResultsDiffer, Share
from remy_farm.evaluation.scheduler.records import (
    Assignment,
    Completion,
    Quarantine,
    SchedulerSettings,
)
from remy_farm.evaluation.scheduler.scheduler import TaskScheduler, WorkerQuarantined
from remy_farm.evaluation.scheduler.workers import WorkerFacts
from remy_proto.v1 import evaluation_pb2
from remy_simulator.columns import Slice, assemble

#: CPU seconds that a packet takes in these simulations.
SECONDS_PER_PACKET = 5e-8


@dataclass
class SimulatedWorker:
    """A simulated worker and its faults."""

    facts: WorkerFacts
    #: By lease: unanswered tasks, each with the time at which it is done.
    tasks: dict[int, tuple[Assignment, float]] = field(default_factory=dict)
    #: The time at which each thread becomes idle.
    free_at: list[float] = field(default_factory=list)
    last_seen_at: float = 0.0
    #: Whether it neither works, sends nor receives.
    frozen: bool = False
    #: Cancelled leases that it has not given back. A frozen worker gives them back later.
    cancelled: set[int] = field(default_factory=set)
    #: Error that it adds to its results.
    off_by: int = 0
    slowness: float = 1.0


class SimulatedFleet:
    """Carries out the scheduler's effects, and checks its guarantees at every step."""

    def __init__(self, settings: SchedulerSettings) -> None:
        self.scheduler = TaskScheduler(settings)
        self.now = 0.0
        self.workers: dict[str, SimulatedWorker] = {}
        self.requests: dict[int, evaluation_pb2.EvaluationRequest] = {}
        self.withdrawn: set[int] = set()
        self.ended: dict[int, Completion | Quarantine | Exception] = {}
        self.quarantined: set[str] = set()
        #: CPU seconds of assigned tasks, by job.
        self.given: dict[str, float] = {}
        #: By how much the first answer to each task is wrong.
        self.first_answers: dict[tuple[int, Slice], int] = {}
        #: Jobs with answers that differ, and those of them that have not failed yet.
        self.contradicted: set[str] = set()
        self.not_failed_yet: set[str] = set()
        self.jobs: dict[int, str] = {}

    # Evaluations.

    def submit(self, share: Share, request: evaluation_pb2.EvaluationRequest) -> int:
        number = self.scheduler.submit(share, request)
        self.requests[number] = request
        self.jobs[number] = share.job_id
        return number

    def withdraw(self, number: int) -> None:
        if number not in self.ended:
            self.withdrawn.add(number)
            # The end of a withdrawn evaluation is not reported, not even a failure.
            self.not_failed_yet.discard(self.jobs[number])
        self.scheduler.withdraw(number)

    # Workers.

    def join(self, name: str, *, threads: int = 1, job_id: str = "", reserve: int = 1) -> None:
        facts = WorkerFacts(name, threads, job_id, version=f"1.0 of {name}", host=f"host of {name}")
        try:
            self.scheduler.join(facts, self.now)
        except WorkerQuarantined:
            assert name in self.quarantined
            return
        assert name not in self.quarantined
        self.workers[name] = SimulatedWorker(
            facts, free_at=[self.now] * threads, last_seen_at=self.now
        )
        self.scheduler.credit(name, threads + reserve, self.now)

    def kill(self, name: str) -> None:
        """Kills the worker's process."""
        del self.workers[name]
        self.scheduler.leave(name, self.now)

    def leave(self, name: str) -> None:
        """Lets the worker say goodbye, answer all of its tasks but the first, and leave."""
        self.scheduler.record_goodbye(name)
        for lease_id in list(self.workers[name].tasks)[1:]:
            self.answer(name, lease_id)
        self.kill(name)

    def reconnect(self, name: str) -> None:
        """Breaks the worker's connection. It joins again, and sends its results late."""
        worker = self.workers[name]
        unanswered = dict(worker.tasks)
        self.kill(name)
        self.join(name, threads=worker.facts.threads, job_id=worker.facts.job_id)
        if name in self.workers:
            for lease_id, (assignment, _) in unanswered.items():
                self._complete(name, lease_id, assignment, worker.off_by)

    # Answers.

    def answer(self, name: str, lease_id: int) -> None:
        worker = self.workers[name]
        assignment, _ = worker.tasks.pop(lease_id)
        self._complete(name, lease_id, assignment, worker.off_by)

    def _complete(self, name: str, lease_id: int, assignment: Assignment, off_by: int) -> None:
        outcome = slice_outcome(assignment.whole, assignment.slice, off_by=off_by)
        digest = hashlib.sha256(outcome.SerializeToString()).digest()
        seconds = self._cpu_seconds(assignment)
        self._compare(lease_id, assignment, off_by)
        self.scheduler.complete(name, lease_id, outcome, digest, seconds, self.now)

    def _compare(self, lease_id: int, assignment: Assignment, off_by: int) -> None:
        """Records whether the scheduler must find that this answer differs from an earlier one."""
        if self.scheduler.task(lease_id) is None:
            return
        first = self.first_answers.setdefault((assignment.evaluation_id, assignment.slice), off_by)
        if first != off_by:
            self.contradicted.add(assignment.share.job_id)
            self.not_failed_yet.add(assignment.share.job_id)

    def _cpu_seconds(self, assignment: Assignment) -> float:
        columns = assignment.whole.specimen_columns
        rates = memoryview(columns.link_rates_packets_per_ms).cast("d")
        packets = sum(
            rates[number] * assignment.whole.duration_ms for number in assignment.slice.specimens
        )
        return packets * len(assignment.slice.candidates) * SECONDS_PER_PACKET

    # Time.

    def advance(self, seconds: float = 0.0) -> None:
        """Advances the time, sends heartbeats, carries out the effects and checks guarantees."""
        self.now += seconds
        for name, worker in self.workers.items():
            if not worker.frozen:
                worker.last_seen_at = self.now
                self.scheduler.heartbeat(name, self.now)
                self._return_cancelled(name)
        effects = self.scheduler.advance(self.now)
        for assignment in effects.assignments:
            self.assign(assignment)
        for name, lease_ids in effects.cancelled.items():
            if name in self.workers:
                self.workers[name].cancelled.update(lease_ids)
                if not self.workers[name].frozen:
                    self._return_cancelled(name)
        for name in effects.expelled:
            self.quarantined.add(name)
            self.workers.pop(name, None)
        for number, end in effects.ended.items():
            assert number not in self.ended
            assert number not in self.withdrawn
            self.ended[number] = end
            self._check_end(number, end)

        for worker in self.workers.values():
            # A worker that has been silent for the length of a lease has lost its leases.
            if worker.last_seen_at <= self.now - self.scheduler.settings.lease_seconds:
                assert worker.tasks.keys() <= worker.cancelled

    def _check_end(self, number: int, end: Completion | Quarantine | Exception) -> None:
        request = self.requests[number]
        if isinstance(end, Completion):
            for piece, outcome in end.parts:
                off_by = self.first_answers[number, piece]
                assert outcome == slice_outcome(request, piece, off_by=off_by)
            if not any(self.first_answers[number, piece] for piece, _ in end.parts):
                assert assemble(request, end.parts) == numbered_outcome(request)
        elif isinstance(end, ResultsDiffer):
            assert self.jobs[number] in self.contradicted
            self.not_failed_yet.discard(self.jobs[number])

    def _return_cancelled(self, name: str) -> None:
        worker = self.workers[name]
        for lease_id in worker.cancelled & worker.tasks.keys():
            del worker.tasks[lease_id]
            self.scheduler.give_back(name, [lease_id], self.now)
        worker.cancelled.clear()

    def assign(self, assignment: Assignment) -> None:
        worker = self.workers[assignment.worker_id]
        assert assignment.worker_id not in self.quarantined
        assert worker.facts.job_id in ("", assignment.share.job_id)
        assert assignment.evaluation_id not in self.ended
        assert assignment.evaluation_id not in self.withdrawn
        seconds = self._cpu_seconds(assignment)
        job_id = assignment.share.job_id
        self.given[job_id] = self.given.get(job_id, 0.0) + seconds
        thread = min(range(worker.facts.threads), key=worker.free_at.__getitem__)
        done_at = max(worker.free_at[thread], self.now) + seconds * worker.slowness
        worker.free_at[thread] = done_at
        worker.tasks[assignment.lease_id] = (assignment, done_at)

    def run(self, until: float, *, step: float = 0.05) -> None:
        """Advances the time in steps. Workers that are not frozen answer tasks that are done."""
        while self.now < until and not self.all_ended():
            self.advance(step)
            for name in list(self.workers):
                self.answer_finished_tasks(name)

    def answer_finished_tasks(self, name: str) -> None:
        worker = self.workers[name]
        done = (
            []
            if worker.frozen
            else [lease_id for lease_id, (_, at) in worker.tasks.items() if at <= self.now]
        )
        for lease_id in done:
            # An answer may end other tasks of the worker.
            if lease_id in worker.tasks:
                self.answer(name, lease_id)

    def all_ended(self) -> bool:
        """Whether all evaluations have ended."""
        return len(self.ended) + len(self.withdrawn) == len(self.requests)


def settle(fleet: SimulatedFleet, *, within_seconds: float) -> None:
    """Runs without further faults until all evaluations have ended."""
    for worker in fleet.workers.values():
        worker.frozen = False
        worker.slowness = 1.0
    fleet.run(fleet.now + within_seconds)
    assert fleet.all_ended(), fleet.scheduler.snapshot()


def random_request(rng: random.Random) -> evaluation_pb2.EvaluationRequest:
    """A request with up to 100 simulations and a random cost per simulation."""
    return numbered_request(rng.randint(1, 10), rng.randint(1, 10), [rng.choice([0.1, 1.0, 5.0])])
