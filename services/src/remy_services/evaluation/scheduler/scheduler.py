"""The scheduler of tasks: who has which, who gets the next one, and what came of them."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from remy_farm.v1 import evaluation_pb2
from remy_services.evaluation.interface import EvaluationProgress, Share
from remy_services.evaluation.scheduler.fair_queue import Job, WorkQueue
from remy_services.evaluation.scheduler.records import (
    Answer,
    Assignment,
    BoardSettings,
    BoardSnapshot,
    Completion,
    Contradiction,
    Counts,
    Effects,
    EvaluationRecord,
    Lease,
    Quarantine,
    Refusal,
    Task,
)
from remy_services.evaluation.scheduler.workers import Pool, Roster, Worker, WorkerFacts
from remy_services.evaluation.tasks import Slicer
from remy_services.evaluation.tasks import Task as Slice

# Tasks that run for longer than they should, so that idle workers can do them too.


class Hedges:
    """Copies of tasks, by the time from which another copy is worth its cost."""

    def __init__(self) -> None:
        self._later: list[tuple[float, int, Lease]] = []
        self._due: dict[Task, None] = {}

    def watch(self, lease: Lease, due_at: float) -> None:
        """A copy was given out."""
        heapq.heappush(self._later, (due_at, lease.lease_id, lease))

    def collect(self, now: float) -> None:
        """Finds the copies that are late by now."""
        while self._later and self._later[0][0] <= now:
            lease = heapq.heappop(self._later)[2]
            if lease.active:
                self._due[lease.task] = None

    def due(self) -> list[Task]:
        """The tasks with a copy that is late, those first that have been late for longest."""
        self._due = {task: None for task in self._due if task.active}
        return list(self._due)

    def hedged(self, task: Task) -> None:
        """Another copy was given out, which will be late in its own time."""
        self._due.pop(task, None)


# What a board knows, for the modules that change it.


@dataclass
class BoardState:
    """Everything; nothing of it refers to a clock, a file or a connection."""

    settings: BoardSettings
    next_lease_id: int
    roster: Roster = field(default_factory=Roster)
    queue: WorkQueue = field(default_factory=WorkQueue)
    hedges: Hedges = field(default_factory=Hedges)
    counts: Counts = field(default_factory=Counts)
    effects: Effects = field(default_factory=Effects)
    #: Leases that may still be answered.
    leases: dict[int, Lease] = field(default_factory=dict)
    #: Open tasks that ended workers.
    suspects: dict[Task, None] = field(default_factory=dict)
    #: Workers that get nothing any more: why.
    quarantined: OrderedDict[str, str] = field(default_factory=OrderedDict)

    def want(self, task: Task) -> None:
        """Has the task given out again if it is open and nobody has it."""
        if task.closed:
            return
        if task.active:
            self.queue.take_out(task)
        else:
            self.queue.put_back(task)

    def end_lease(self, lease: Lease, reason: str) -> None:
        """Nobody waits for this copy any more; the task may need another."""
        if lease.active:
            lease.active = False
            self.counts.leases_ended[reason] += 1
            self.want(lease.task)

    def cancel_copies(self, task: Task, reason: str) -> None:
        """Nobody waits for the task any more: its workers need not go on."""
        for lease in task.leases.values():
            if lease.active:
                lease.active = False
                self.counts.leases_ended[reason] += 1
                self.effects.cancelled.setdefault(lease.worker_id, []).append(lease.lease_id)
        self.suspects.pop(task, None)

    def forget_copies(self, task: Task) -> None:
        """The task's evaluation has ended: who has left cannot answer any more."""
        for lease in task.leases.values():
            worker = self.roster.workers.get(lease.worker_id)
            if worker is None or lease.lease_id not in worker.held:
                del self.leases[lease.lease_id]
        task.leases.clear()


# How evaluations end.


def finish_if_complete(state: BoardState, evaluation: EvaluationRecord) -> None:
    """Hands out the outcomes once all of them are there."""
    if evaluation.closed or not evaluation.complete:
        return
    parts = [
        (task.slice, task.accepted.outcome)
        for task in evaluation.done
        if task.accepted is not None and task.accepted.outcome is not None
    ]
    close(state, evaluation, "done elsewhere")
    state.effects.ended[evaluation.evaluation_id] = Completion(
        parts,
        cpu_seconds=evaluation.cpu_seconds,
        workers=frozenset(evaluation.workers),
    )


def fail(
    state: BoardState, evaluation: EvaluationRecord, why: Refusal | Quarantine | Contradiction
) -> None:
    """Gives an evaluation up."""
    if not evaluation.closed:
        close(state, evaluation, "withdrawn")
        state.effects.ended[evaluation.evaluation_id] = why


def close(state: BoardState, evaluation: EvaluationRecord, reason: str) -> None:
    """Nothing of an evaluation is wanted any more."""
    evaluation.closed = True
    for task in (*evaluation.open, *evaluation.done):
        state.cancel_copies(task, reason)
        state.forget_copies(task)
    state.queue.remove(evaluation)


# Workers that come, go, fall silent, or are ended by what they were given.


def join(state: BoardState, facts: WorkerFacts, now: float) -> None:
    """A worker comes. If one of its name is there still, that one's connection is dead."""
    if facts.worker_id in state.roster.workers:
        dismiss(state, facts.worker_id, "lost")
    state.roster.add(facts, now)
    state.counts.workers_joined += 1
    # It had not ended after all: only its connection had.
    for task in list(state.suspects):
        task.ended.discard(facts.worker_id)
        if not task.ended:
            del state.suspects[task]


def say_goodbye(state: BoardState, worker_id: str) -> None:
    """A worker announces that it ends: it takes no more tasks, and what follows is no failure."""
    worker = state.roster.workers.get(worker_id)
    if worker is not None and not worker.leaving:
        state.roster.leaves(worker)


def leave(state: BoardState, worker_id: str, now: float) -> None:
    """A worker cannot be reached any more; others get what it had."""
    worker = state.roster.workers.get(worker_id)
    if worker is None:
        return
    reason = "goodbye" if worker.leaving else "lost"
    state.counts.workers_left[reason] += 1
    if not worker.leaving:
        _blame(state, worker, now)
    dismiss(state, worker_id, reason)


def dismiss(state: BoardState, worker_id: str, reason: str) -> None:
    """A worker is gone; others get what it had."""
    worker = state.roster.workers[worker_id]
    state.roster.remove(worker)
    for lease in worker.held.values():
        state.end_lease(lease, reason)
        if lease.task.evaluation.closed:
            state.leases.pop(lease.lease_id, None)


def expire(state: BoardState, now: float) -> None:
    """Others get what workers hold that have not been heard of for a lease's length."""
    for worker in state.roster.take_silent(now - state.settings.lease_seconds):
        for lease in worker.held.values():
            if lease.active:
                cancelled = state.effects.cancelled.setdefault(worker.facts.worker_id, [])
                cancelled.append(lease.lease_id)
                state.end_lease(lease, "silent")


def _blame(state: BoardState, worker: Worker, now: float) -> None:
    """What a worker was doing when it ended may be what ended it.

    All that its threads were doing is suspected at first. Suspects are then done one at a time, and
    whoever ends doing one of them was ended by that one.
    """
    active = [lease.task for lease in worker.held.values() if lease.active]
    running = active[: worker.facts.threads]
    for task in [task for task in running if task.ended] or running:
        task.ended.add(worker.facts.worker_id)
        task.ended_at = now
        state.suspects[task] = None
        if len(task.ended) >= state.settings.ended_workers:
            _give_up(state, task)


def _give_up(state: BoardState, task: Task) -> None:
    state.counts.quarantined_tasks += 1
    request = task.slice.request(task.evaluation.request)
    fail(state, task.evaluation, Quarantine(request, tuple(sorted(task.ended))))


# What workers say of the tasks that they were given, and what becomes of them for it.
#
# An evaluation is a pure function, and a worker has proved its simulator when it joined: the first
# intact answer to a task holds. A task that was hedged or lent anew may be answered again; a second
# answer that differs from the first says that one of two is wrong and not which, so the job fails.
# A
# result that is damaged or impossible says something of its worker alone.


_QUARANTINED_REMEMBERED = 4096


def complete(
    state: BoardState,
    worker_id: str,
    lease_id: int,
    outcome: evaluation_pb2.EvaluationOutcome,
    sha256: bytes,
    cpu_seconds: float,
    now: float,
) -> None:
    """A result that has passed its checks."""
    lease = _answered(state, worker_id, lease_id, now)
    if lease is None:
        return
    evaluation = lease.task.evaluation
    state.counts.cpu_seconds += cpu_seconds
    state.counts.count_duration(now - lease.issued_at)
    if not evaluation.closed:
        evaluation.cpu_seconds += cpu_seconds
        job = state.queue.job_of(evaluation)
        job.cost.learn(lease.task.packets, cpu_seconds)
        state.queue.order.charge(job, cpu_seconds - lease.seconds)
    answer = Answer(worker_id, _version(state, worker_id), sha256, outcome)
    if lease.task.closed:
        state.counts.duplicate_results += 1
        _compare(state, lease.task, answer)
    else:
        _accept(state, lease.task, answer, outcome)


def refuse(state: BoardState, worker_id: str, lease_id: int, why: str, now: float) -> None:
    """The simulator refuses the task, and every worker's simulator is the same."""
    lease = _answered(state, worker_id, lease_id, now)
    if lease is None:
        return
    key = b"refused: " + why.encode()
    answer = Answer(worker_id, _version(state, worker_id), key, None)
    if lease.task.closed:
        _compare(state, lease.task, answer)
    else:
        lease.task.accepted = answer
        fail(state, lease.task.evaluation, Refusal(why))


def disbelieve(
    state: BoardState, worker_id: str, lease_id: int, sha256: bytes, why: str, now: float
) -> None:
    """A result that is intact and cannot be right: the worker errs, or the request is to blame.

    It is the request if the same bytes come again.
    """
    lease = _answered(state, worker_id, lease_id, now, reason="bad result")
    task = None if lease is None or lease.task.closed else lease.task
    if task is not None and sha256 in task.impossible:
        state.counts.bad_results["impossible"] += 1
        innocent = state.roster.workers.get(task.impossible[sha256])
        if innocent is not None:
            innocent.bad_results -= 1
        fail(state, task.evaluation, Refusal(why))
        return
    if task is not None:
        task.impossible[sha256] = worker_id
    _count_bad_result(state, worker_id, "impossible")
    if task is not None:
        state.want(task)


def reject(state: BoardState, worker_id: str, lease_id: int, what: str, now: float) -> None:
    """A result that is damaged: it says nothing of the task, but something of the worker."""
    lease = _answered(state, worker_id, lease_id, now, reason="bad result")
    _count_bad_result(state, worker_id, what)
    if lease is not None:
        state.want(lease.task)


def give_back(state: BoardState, worker_id: str, lease_id: int, now: float) -> None:
    """The worker will not do it."""
    lease = _answered(state, worker_id, lease_id, now, reason="returned")
    if lease is not None:
        state.want(lease.task)


def _answered(
    state: BoardState, worker_id: str, lease_id: int, now: float, reason: str | None = None
) -> Lease | None:
    """The lease that a worker answers, once; None if there is nothing that it could answer."""
    worker = state.roster.workers.get(worker_id)
    if worker is None:
        return None
    state.roster.heard(worker, now)
    lease = state.leases.get(lease_id)
    if lease is None or lease.worker_id != worker_id:
        state.counts.unknown_leases += 1
        return None
    del state.leases[lease_id]
    lease.task.leases.pop(lease_id, None)
    if worker.held.pop(lease_id, None) is not None:
        worker.credits += 1
        state.roster.file(worker)
    if lease.active and reason is not None:
        state.counts.leases_ended[reason] += 1
    lease.active = False
    return lease


def _version(state: BoardState, worker_id: str) -> str:
    return state.roster.workers[worker_id].facts.version


def _accept(
    state: BoardState, task: Task, answer: Answer, outcome: evaluation_pb2.EvaluationOutcome
) -> None:
    evaluation = task.evaluation
    task.accepted = answer
    state.queue.take_out(task)
    state.cancel_copies(task, "done elsewhere")
    del evaluation.open[task]
    evaluation.done[task] = None
    evaluation.workers.add(answer.worker_id)
    evaluation.simulations_done += task.slice.simulations
    evaluation.simulated_packets += sum(sum(result.packets_sent) for result in outcome.outcomes)
    state.counts.tasks_done += 1
    state.counts.simulations_done += task.slice.simulations
    finish_if_complete(state, evaluation)


def _compare(state: BoardState, task: Task, second: Answer) -> None:
    """Fails the job if an answer is not the one that holds.

    What came of the task may be part of the search by now: if nothing of the job is open, its next
    evaluation fails.
    """
    first = task.accepted
    if first is None or first.key == second.key:
        return
    contradiction = Contradiction(
        f"{_described(first)} and {_described(second)} gave different results for the same task: "
        "one of the machines computes wrongly; take it out of service and resume the job"
    )
    job_id = task.evaluation.share.job_id
    concerned = [each for each in state.queue.evaluations.values() if each.share.job_id == job_id]
    for evaluation in concerned:
        fail(state, evaluation, contradiction)
    job = state.queue.job(job_id)
    if job is not None and not concerned:
        job.contradiction = contradiction


def _described(answer: Answer) -> str:
    return f"worker {answer.worker_id} (simulator {answer.version or 'of unknown version'})"


def _count_bad_result(state: BoardState, worker_id: str, what: str) -> None:
    """Quarantines a worker that has sent too many."""
    state.counts.bad_results[what] += 1
    worker = state.roster.workers.get(worker_id)
    if worker is None:
        return
    worker.bad_results += 1
    if worker.bad_results < state.settings.bad_results:
        return
    why = f"{worker.bad_results} of its results were damaged or impossible"
    state.quarantined[worker_id] = why
    if len(state.quarantined) > _QUARANTINED_REMEMBERED:
        state.quarantined.popitem(last=False)
    state.counts.quarantined_workers += 1
    state.effects.expelled[worker_id] = why
    dismiss(state, worker_id, "quarantined")


# Which worker gets which task now.


# A job's first tasks are meant to be so much shorter: they tell what its simulations cost.
_FIRST_TASKS = 0.1


def assign(state: BoardState, now: float) -> None:
    """Gives out all that workers have room for: to idle threads first, then for their reserves."""
    state.queue.date_arrivals(now)
    for pool in state.roster.pools():
        _fill(state, pool, now, idle=True)
        _fill(state, pool, now, idle=False)
    _hedge(state, now)


def _fill(state: BoardState, pool: Pool, now: float, *, idle: bool) -> None:
    room = pool.idle if idle else pool.spare
    passed = []
    while room:
        _, worker = room.popitem(last=False)
        task = _take(state, pool, worker, idle=idle)
        if task is None:
            passed.append(worker)
            if not _has_work(state, pool):
                break
        else:
            _issue(state, task, worker, now)
    for worker in reversed(passed):
        room[worker.facts.worker_id] = worker
        room.move_to_end(worker.facts.worker_id, last=False)


def _has_work(state: BoardState, pool: Pool) -> bool:
    if pool.job_id:
        job = state.queue.job(pool.job_id)
        return job is not None and bool(job.working)
    return not state.queue.order.empty


def _take(state: BoardState, pool: Pool, worker: Worker, *, idle: bool) -> Task | None:
    """The next task for a worker, out of its queue."""
    if not pool.job_id:
        return state.queue.order.first(lambda job: _take_from(state, job, worker, idle=idle))
    job = state.queue.job(pool.job_id)
    return None if job is None else _take_from(state, job, worker, idle=idle)


def _take_from(state: BoardState, job: Job, worker: Worker, *, idle: bool) -> Task | None:
    for evaluation in job.working.values():
        task = _next(state, job, evaluation, worker, idle=idle)
        if task is not None:
            state.queue.refresh(evaluation)
            return task
    return None


def _next(
    state: BoardState, job: Job, evaluation: EvaluationRecord, worker: Worker, *, idle: bool
) -> Task | None:
    if evaluation.returned:
        return evaluation.returned.popitem(last=False)[0]
    for task in evaluation.suspected:
        if _may_do(task, worker, idle=idle):
            del evaluation.suspected[task]
            return task
    return None if evaluation.slicer.exhausted else _cut(state, job, evaluation)


def _cut(state: BoardState, job: Job, evaluation: EvaluationRecord) -> Task:
    """A new task, of a size that leaves something for every thread of the job's share."""
    settings, slicer = state.settings, evaluation.slicer
    rate = job.cost.seconds_per_packet
    threads = state.roster.threads_for(job.share.job_id) * state.queue.order.share_of(job)
    even = slicer.packets * rate / (max(threads, 1.0) * settings.tasks_per_thread)
    longest = settings.longest_task_seconds * (1.0 if job.cost.known else _FIRST_TASKS)
    seconds = min(max(even, settings.shortest_task_seconds), longest)
    piece, packets = slicer.cut(seconds / rate)
    return Task(evaluation, piece, packets)


def _may_do(task: Task, worker: Worker, *, idle: bool) -> bool:
    if task.is_with(worker.facts.worker_id):
        return False
    return not task.ended or (idle and _may_do_a_suspect(task, worker))


def _may_do_a_suspect(task: Task, worker: Worker) -> bool:
    """Whether the worker's end would tell something of the task."""
    # What ends a worker should end it by itself, so that nothing else is suspected. Workers that
    # vanish together are missed one after the other: whose sign of life is older than the last end
    # may be gone already.
    return not worker.holds_a_suspect and worker.heard_at > task.ended_at


def _issue(
    state: BoardState, task: Task, worker: Worker, now: float, *, hedge: bool = False
) -> None:
    evaluation, settings = task.evaluation, state.settings
    job = state.queue.job_of(evaluation)
    seconds = task.packets * job.cost.seconds_per_packet
    lease = Lease(state.next_lease_id, task, worker.facts.worker_id, now, seconds)
    state.next_lease_id += 1
    before = len(worker.held) // worker.facts.threads
    state.leases[lease.lease_id] = task.leases[lease.lease_id] = lease
    worker.held[lease.lease_id] = lease
    worker.credits -= 1
    state.roster.file(worker)
    if task not in evaluation.open:
        state.counts.count_queue_time(now - evaluation.arrived_at)
    evaluation.open[task] = None
    late = settings.hedge_seconds + settings.hedge_factor * seconds * (1 + before)
    state.hedges.watch(lease, now + late)
    state.counts.tasks_assigned += 1
    if hedge:
        state.counts.hedged_tasks += 1
        state.hedges.hedged(task)
    else:
        state.queue.order.charge(job, seconds)
        state.want(task)
    state.effects.assignments.append(
        Assignment(
            worker.facts.worker_id,
            lease.lease_id,
            evaluation.share,
            evaluation.evaluation_id,
            task.slice,
            evaluation.request,
        )
    )


def _hedge(state: BoardState, now: float) -> None:
    """Gives tasks that are late to threads that have nothing else to do."""
    state.hedges.collect(now)
    if not any(pool.idle for pool in state.roster.pools()):
        return
    for task in state.hedges.due():
        worker = _idle_worker(state, task)
        if worker is not None:
            _issue(state, task, worker, now, hedge=True)


def _idle_worker(state: BoardState, task: Task) -> Worker | None:
    if task.active >= state.settings.copies:
        return None
    for pool in state.roster.pools():
        if pool.job_id in ("", task.evaluation.share.job_id):
            for worker in pool.idle.values():
                if _may_do(task, worker, idle=True):
                    return worker
    return None


# The board that tasks are on: who has which, who gets the next one, and what came of them.


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
            fail(self._state, evaluation, job.contradiction)
            job.contradiction = None
        return self._evaluations

    def withdraw(self, evaluation_id: int) -> None:
        """A request is not wanted any more; its end is not told if it was not told yet."""
        self._state.effects.ended.pop(evaluation_id, None)
        evaluation = self._state.queue.evaluations.get(evaluation_id)
        if evaluation is not None:
            close(self._state, evaluation, "withdrawn")

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
        join(self._state, facts, now)

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
        say_goodbye(self._state, worker_id)

    def leave(self, worker_id: str, now: float) -> None:
        """A worker is gone; without a goodbye, what it was doing may be why."""
        leave(self._state, worker_id, now)

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
        complete(self._state, worker_id, lease_id, outcome, sha256, cpu_seconds, now)

    def refuse(self, worker_id: str, lease_id: int, why: str, now: float) -> None:
        """The simulator refuses the task. One sentence for people."""
        refuse(self._state, worker_id, lease_id, why, now)

    def disbelieve(
        self, worker_id: str, lease_id: int, sha256: bytes, why: str, now: float
    ) -> None:
        """An undamaged result that cannot be right."""
        disbelieve(self._state, worker_id, lease_id, sha256, why, now)

    def reject(self, worker_id: str, lease_id: int, what: str, now: float) -> None:
        """A damaged result; in a word or two, for counting: what is wrong with it."""
        reject(self._state, worker_id, lease_id, what, now)

    def give_back(self, worker_id: str, lease_ids: Sequence[int], now: float) -> None:
        """Tasks that the worker will not do."""
        for lease_id in lease_ids:
            give_back(self._state, worker_id, lease_id, now)

    # Time.

    def advance(self, now: float) -> Effects:
        """Ends the leases of silent workers, gives out tasks, and returns all that is to be done.

        To be called after anything was told, and from time to time.
        """
        expire(self._state, now)
        assign(self._state, now)
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
