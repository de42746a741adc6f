"""The scheduler of tasks: one state machine, told what happens and asked what is to be done."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Collection, Sequence
from itertools import count

from remy_farm.evaluation.interface import (
    EvaluationProgress,
    PacketLimitReached,
    ResultsDiffer,
    Share,
)
from remy_farm.evaluation.scheduler.fair_queue import Job, WorkQueue
from remy_farm.evaluation.scheduler.records import (
    Answer,
    Assignment,
    Completion,
    Counts,
    Effects,
    EndedWorker,
    EvaluationRecord,
    Lease,
    Quarantine,
    SchedulerSettings,
    SchedulerSnapshot,
    Task,
)
from remy_farm.evaluation.scheduler.workers import (
    Worker,
    WorkerFacts,
    WorkerPool,
    WorkerRegistry,
)
from remy_farm.evaluation.tasks import Slicer, stated_packets
from remy_proto.v1 import evaluation_pb2
from remy_simulator import InvalidRequest
from remy_simulator.columns import Slice, Slicing, shared_part

# A job's first tasks are meant to be so much shorter: they tell what its simulations cost.
_FIRST_TASKS = 0.1
_QUARANTINED_REMEMBERED = 4096


class WorkerQuarantined(Exception):
    """A worker that is quarantined wants to join. One sentence for people."""


class TaskScheduler:
    """Requests of many jobs, cut into tasks, and the workers that do them. See the package.

    From top to bottom: evaluations, workers, their answers, what becomes of tasks, time, who gets
    which task, and what is seen from outside.
    """

    def __init__(
        self, settings: SchedulerSettings | None = None, *, first_lease_id: int = 1
    ) -> None:
        """A scheduler without work and workers.

        `first_lease_id` should differ from scheduler to scheduler by more than there are tasks, so
        that a late answer to one means nothing to the next.
        """
        self.settings = settings or SchedulerSettings()
        self._lease_ids = count(first_lease_id)
        self._evaluation_ids = count(1)
        self._advanced_at = 0.0
        self._registry = WorkerRegistry()
        self._queue = WorkQueue()
        # Copies of tasks by the time from which another copy is worth its cost, and the tasks with
        # a copy that is late, those first that have been late for longest.
        self._hedge_times: list[tuple[float, int, Lease]] = []
        self._late: dict[Task, None] = {}
        self._counts = Counts()
        self._effects = Effects()
        # Leases that may still be answered.
        self._leases: dict[int, Lease] = {}
        # Open tasks that ended workers.
        self._suspects: dict[Task, None] = {}
        # Hosts whose workers ended in themselves; None: nobody watches any.
        self._crashed: frozenset[str] | None = None
        # Workers that get nothing any more: why.
        self._quarantined: OrderedDict[str, str] = OrderedDict()

    # Evaluations

    def submit(self, share: Share, request: evaluation_pb2.EvaluationRequest) -> int:
        """A packed request to evaluate. Returns the number by which its end is told."""
        evaluation_id = next(self._evaluation_ids)
        job = self._queue.remember(share)
        stated = stated_packets(request)
        slicer = Slicer(len(request.candidates), job.cost.expected_packets(stated))
        simulations = len(request.candidates) * len(stated)
        evaluation = EvaluationRecord(
            evaluation_id, share, Slicing(request), stated, slicer, simulations
        )
        self._queue.add(evaluation)
        if job.contradiction is not None:
            self._fail(evaluation, job.contradiction)
            job.contradiction = None
        return evaluation_id

    def withdraw(self, evaluation_id: int) -> None:
        """A request is not wanted any more; its end is not told if it was not told yet."""
        self._effects.ended.pop(evaluation_id, None)
        evaluation = self._queue.evaluations.get(evaluation_id)
        if evaluation is not None:
            self._close(evaluation, "withdrawn")

    def progress(self, evaluation_id: int) -> EvaluationProgress | None:
        """How far a request has come; None once it has ended."""
        evaluation = self._queue.evaluations.get(evaluation_id)
        if evaluation is None:
            return None
        return EvaluationProgress(
            evaluation.simulations_done, evaluation.simulations, evaluation.simulated_packets
        )

    def _finish_if_complete(self, evaluation: EvaluationRecord) -> None:
        if evaluation.closed or not evaluation.complete:
            return
        parts = [
            (task.slice, task.accepted.outcome)
            for task in evaluation.done
            if task.accepted is not None and task.accepted.outcome is not None
        ]
        self._close(evaluation, "done elsewhere")
        self._effects.ended[evaluation.evaluation_id] = Completion(
            parts, cpu_seconds=evaluation.cpu_seconds, workers=frozenset(evaluation.workers)
        )

    def _fail(self, evaluation: EvaluationRecord, why: Quarantine | Exception) -> None:
        if not evaluation.closed:
            self._close(evaluation, "withdrawn")
            self._effects.ended[evaluation.evaluation_id] = why

    def _fail_over_limit(self, evaluation: EvaluationRecord) -> None:
        limit = evaluation.share.packet_limit
        why = f"the evaluation sends more packets than the {limit} that are left to it"
        self._fail(evaluation, PacketLimitReached(why))

    def _close(self, evaluation: EvaluationRecord, reason: str) -> None:
        """Nothing of an evaluation is wanted any more."""
        evaluation.closed = True
        for task in (*evaluation.open, *evaluation.done):
            self._cancel_copies(task, reason)
            self._drop_leases(task)
        self._queue.remove(evaluation)

    # Workers: they come, go, fall silent, or are ended by what they were given

    def join(self, facts: WorkerFacts, now: float) -> None:
        """A worker is there; it gets nothing before it has credit.

        One of this name that is there still leaves first: its connection is dead. Raises
        WorkerQuarantined.
        """
        why = self._quarantined.get(facts.worker_id)
        if why is not None:
            raise WorkerQuarantined(f"worker {facts.worker_id} is quarantined: {why}")
        if facts.worker_id in self._registry.workers:
            self._dismiss(facts.worker_id, "lost")
        self._registry.add(facts, now)
        self._counts.workers_joined += 1
        # It had not ended after all: only its connection had.
        for task in list(self._suspects):
            task.ended.pop(facts.worker_id, None)
            if not task.ended:
                del self._suspects[task]

    def credit(self, worker_id: str, tasks: int, now: float) -> None:
        """A worker can take so many tasks more than it has. Answering a task makes room for one."""
        worker = self._registry.workers.get(worker_id)
        if worker is not None:
            worker.credits += tasks
            self._registry.heard(worker, now)
            self._registry.file(worker)

    def heartbeat(self, worker_id: str, now: float) -> None:
        """A worker is alive."""
        worker = self._registry.workers.get(worker_id)
        if worker is not None:
            self._registry.heard(worker, now)

    def say_goodbye(self, worker_id: str, why: str = "goodbye") -> None:
        """A worker will leave: it gets nothing any more, but may still answer. `why` is a word."""
        worker = self._registry.workers.get(worker_id)
        if worker is not None and not worker.goodbye:
            self._registry.leaves(worker, why)

    def leave(self, worker_id: str, now: float) -> None:
        """A worker is gone; without a goodbye, what it was doing may be why."""
        worker = self._registry.workers.get(worker_id)
        if worker is None:
            return
        if worker.goodbye:
            self._counts.workers_left[worker.goodbye] += 1
            self._dismiss(worker_id, "goodbye")
            return
        is_alone = now - worker.heard_at <= self.settings.sign_of_life_seconds
        self._counts.workers_left["lost" if is_alone else "silent"] += 1
        held = {lease.task.evaluation.share.job_id for lease in worker.held.values()}
        self._counts.workers_lost.update(held | {worker.facts.job_id} - {""})
        if is_alone:
            self._registry.losses += 1
            self._blame(worker, now)
        self._dismiss(worker_id, "lost")

    def learn_crashes(self, hosts: Collection[str]) -> None:
        """Whoever started the workers that serve one job saw them end in themselves on these hosts.

        From the first call on, no task is given up for a worker of one job that ended elsewhere:
        that may have been its machine. To be told again for as long as it is known.
        """
        self._crashed = frozenset(hosts)
        for task in list(self._suspects):
            self._give_up_if_deadly(task)

    def _dismiss(self, worker_id: str, reason: str) -> None:
        """A worker is gone; others get what it had."""
        worker = self._registry.workers[worker_id]
        self._registry.remove(worker)
        for lease in worker.held.values():
            self._end_lease(lease, reason)
            if _took_too_long(lease, worker):
                self._divide(lease.task)
            if lease.task.evaluation.closed or lease.task.divided:
                self._leases.pop(lease.lease_id, None)

    def _blame(self, worker: Worker, now: float) -> None:
        """What a worker was doing when it ended may be what ended it.

        All that its threads were doing is suspected at first. Suspects are then done one at a time,
        and whoever ends doing one of them was ended by that one.
        """
        active = [lease for lease in worker.held.values() if lease.active]
        running = active[: worker.facts.threads]
        is_watched = self._crashed is not None and bool(worker.facts.job_id)
        host = worker.facts.host if is_watched else ""
        for lease in [lease for lease in running if lease.task.ended] or running:
            task = lease.task
            if _took_too_long(lease, worker):
                continue
            # However soon it ended, it might have as well as long as the task would have taken.
            seconds = max(now - lease.issued_at, lease.seconds)
            task.ended[worker.facts.worker_id] = EndedWorker(host, seconds)
            task.ended_at = now
            self._suspects[task] = None
            self._give_up_if_deadly(task)

    def _give_up_if_deadly(self, task: Task) -> None:
        for worker in task.ended.values():
            if worker.host and self._crashed is not None and worker.host in self._crashed:
                worker.host, worker.seconds = "", 0.0
        proven = {name: worker for name, worker in task.ended.items() if not worker.host}
        if len(proven) < self.settings.ended_workers or task.evaluation.closed:
            return
        # Where machines are taken away every minute, some task is on three of them.
        if (
            self._registry.chance_of_losses(proven.values()) <= self.settings.chance_of_losses
            or len(proven) >= self.settings.most_ended_workers
        ):
            self._counts.quarantined_tasks += 1
            request = shared_part(task.evaluation.request)
            request.MergeFrom(task.evaluation.slicing.slice(task.slice))
            self._fail(task.evaluation, Quarantine(request, tuple(sorted(proven))))

    def _count_bad_result(self, worker_id: str, what: str) -> None:
        """Quarantines a worker that has sent too many."""
        self._counts.bad_results[what] += 1
        worker = self._registry.workers.get(worker_id)
        if worker is None:
            return
        worker.bad_results += 1
        if worker.bad_results < self.settings.bad_results:
            return
        why = f"{worker.bad_results} of its results were damaged or impossible"
        self._quarantined[worker_id] = why
        if len(self._quarantined) > _QUARANTINED_REMEMBERED:
            self._quarantined.popitem(last=False)
        self._counts.quarantined_workers += 1
        self._counts.workers_left["quarantined"] += 1
        self._effects.expelled[worker_id] = why
        self._dismiss(worker_id, "quarantined")

    # Answers; each lease takes one
    #
    # An evaluation is a pure function, and a worker has proved its simulator when it joined: the
    # first intact answer to a task holds. A task that was hedged or lent anew may be answered
    # again; a second answer that differs from the first says that one of two is wrong and not
    # which, so the job fails. A result that is damaged or impossible says something of its worker
    # alone.

    def task(self, lease_id: int) -> tuple[Slicing, Slice] | None:
        """What a lease is for, to check a result against: the request, and the slice of it.

        None if an answer to it changes nothing: there is none that it could be compared with.
        """
        lease = self._leases.get(lease_id)
        if lease is None or (lease.task.closed and lease.task.accepted is None):
            return None
        return lease.task.evaluation.slicing, lease.task.slice

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
        lease = self._answered(worker_id, lease_id, now)
        if lease is None:
            return
        task, evaluation = lease.task, lease.task.evaluation
        self._counts.cpu_seconds += cpu_seconds
        self._counts.task_durations.add(now - lease.issued_at)
        if not evaluation.closed:
            evaluation.cpu_seconds += cpu_seconds
            job = self._queue.job_of(evaluation)
            specimens = task.slice.specimens
            stated = evaluation.stated_packets[specimens.start : specimens.stop]
            job.cost.learn(stated, outcome.packets_sent, task.packets, cpu_seconds)
            self._queue.order.charge(job, cpu_seconds - lease.seconds)
        answer = Answer(worker_id, self._version(worker_id), sha256, outcome)
        if task.closed:
            self._counts.duplicate_results += 1
            self._compare(task, answer)
        else:
            self._accept(task, answer, outcome)

    def refuse(
        self, worker_id: str, lease_id: int, why: str, now: float, *, over_limit: bool = False
    ) -> None:
        """The simulator refuses the task, as every worker's would. One sentence for people.

        With `over_limit` the task has sent more packets than its share may, and was ended.
        """
        lease = self._answered(worker_id, lease_id, now)
        if lease is None:
            return
        answer = Answer(worker_id, self._version(worker_id), b"refused: " + why.encode(), None)
        if lease.task.closed:
            self._compare(lease.task, answer)
        else:
            lease.task.accepted = answer
            if over_limit:
                self._fail_over_limit(lease.task.evaluation)
            else:
                self._fail(lease.task.evaluation, InvalidRequest(why))

    def disbelieve(
        self, worker_id: str, lease_id: int, sha256: bytes, why: str, now: float
    ) -> None:
        """An undamaged result that cannot be right: the worker errs, or the request is to blame.

        It is the request if the same bytes come again.
        """
        lease = self._answered(worker_id, lease_id, now, reason="bad result")
        task = None if lease is None or lease.task.closed else lease.task
        if task is not None and sha256 in task.impossible:
            self._counts.bad_results["impossible"] += 1
            innocent = self._registry.workers.get(task.impossible[sha256])
            if innocent is not None:
                innocent.bad_results -= 1
            self._fail(task.evaluation, InvalidRequest(why))
            return
        if task is not None:
            task.impossible[sha256] = worker_id
        self._count_bad_result(worker_id, "impossible")
        if task is not None:
            self._want(task)

    def reject(self, worker_id: str, lease_id: int, what: str, now: float) -> None:
        """A damaged result; in a word or two, for counting: what is wrong with it.

        It says nothing of the task, but something of the worker.
        """
        lease = self._answered(worker_id, lease_id, now, reason="bad result")
        self._count_bad_result(worker_id, what)
        if lease is not None:
            self._want(lease.task)

    def give_back(self, worker_id: str, lease_ids: Sequence[int], now: float) -> None:
        """Tasks that the worker will not do."""
        for lease_id in lease_ids:
            lease = self._answered(worker_id, lease_id, now, reason="returned")
            if lease is not None:
                self._want(lease.task)

    def _answered(
        self, worker_id: str, lease_id: int, now: float, reason: str | None = None
    ) -> Lease | None:
        """The lease that a worker answers, once; None if there is nothing that it could answer."""
        worker = self._registry.workers.get(worker_id)
        if worker is None:
            return None
        self._registry.heard(worker, now)
        lease = self._leases.get(lease_id)
        if lease is None or lease.worker_id != worker_id:
            self._counts.unknown_leases += 1
            return None
        del self._leases[lease_id]
        lease.task.leases.pop(lease_id, None)
        if worker.held.pop(lease_id, None) is not None:
            worker.credits += 1
            self._registry.file(worker)
        if lease.active and reason is not None:
            self._counts.leases_ended[reason] += 1
        lease.active = False
        return lease

    def _accept(
        self, task: Task, answer: Answer, outcome: evaluation_pb2.EvaluationOutcome
    ) -> None:
        evaluation = task.evaluation
        task.accepted = answer
        self._queue.take_out(task)
        self._cancel_copies(task, "done elsewhere")
        del evaluation.open[task]
        evaluation.done[task] = None
        evaluation.workers.add(answer.worker_id)
        evaluation.simulations_done += task.slice.simulations
        evaluation.simulated_packets += sum(outcome.packets_sent)
        self._counts.tasks_done += 1
        self._counts.simulations_done += task.slice.simulations
        limit = evaluation.share.packet_limit
        if limit is not None and evaluation.simulated_packets > limit:
            self._fail_over_limit(evaluation)
        self._finish_if_complete(evaluation)

    def _compare(self, task: Task, second: Answer) -> None:
        """Fails the job if an answer is not the one that holds.

        What came of the task may be part of the search by now: if nothing of the job is open, its
        next evaluation fails.
        """
        first = task.accepted
        if first is None or first.key == second.key:
            return
        first_worker, second_worker = (
            f"worker {each.worker_id} (simulator {each.version or 'of unknown version'})"
            for each in (first, second)
        )
        contradiction = ResultsDiffer(
            f"{first_worker} and {second_worker} gave different results for the same task: "
            "one of the machines computes wrongly; take it out of service and resume the job"
        )
        job_id = task.evaluation.share.job_id
        concerned = [
            each for each in self._queue.evaluations.values() if each.share.job_id == job_id
        ]
        for evaluation in concerned:
            self._fail(evaluation, contradiction)
        job = self._queue.job(job_id)
        if job is not None and not concerned:
            job.contradiction = contradiction

    def _version(self, worker_id: str) -> str:
        return self._registry.workers[worker_id].facts.version

    # Copies of a task

    def _want(self, task: Task) -> None:
        """Has the task given out again if it is open and nobody has it."""
        if task.closed:
            return
        if task.active:
            self._queue.take_out(task)
        else:
            self._queue.put_back(task)

    def _end_lease(self, lease: Lease, reason: str) -> None:
        """Nobody waits for this copy any more; the task may need another."""
        if lease.active:
            lease.active = False
            self._counts.leases_ended[reason] += 1
            self._want(lease.task)

    def _divide(self, task: Task) -> None:
        """Has a task that takes longer than workers stay done in pieces.

        The other copies are ended as well: their workers may leave no later.
        """
        task.divided = True
        self._queue.take_out(task)
        self._cancel_copies(task, "divided")
        self._drop_leases(task)
        del task.evaluation.open[task]
        for piece in task.pieces(self.settings.pieces):
            task.evaluation.open[piece] = None
            self._queue.put_back(piece)

    def _drop_leases(self, task: Task) -> None:
        """Nobody is asked for it any more; who still has it will answer."""
        for lease in task.leases.values():
            # Who has left cannot answer any more.
            worker = self._registry.workers.get(lease.worker_id)
            if worker is None or lease.lease_id not in worker.held:
                del self._leases[lease.lease_id]
        task.leases.clear()

    def _cancel_copies(self, task: Task, reason: str) -> None:
        """Nobody waits for the task any more: its workers need not go on."""
        for lease in task.leases.values():
            if lease.active:
                lease.active = False
                self._counts.leases_ended[reason] += 1
                self._effects.cancelled.setdefault(lease.worker_id, []).append(lease.lease_id)
        self._suspects.pop(task, None)

    # Time

    def advance(self, now: float) -> Effects:
        """Ends the leases of silent workers, gives out tasks, and returns all that is to be done.

        To be called after anything was told, and from time to time.
        """
        self._registry.pass_time(now - self._advanced_at)
        self._advanced_at = now
        self._expire(now)
        self._queue.date_arrivals(now)
        for pool in self._registry.pools():
            self._fill(pool, now, idle=True)
            self._fill(pool, now, idle=False)
        self._hedge(now)
        self._registry.note_saturation()
        effects, self._effects = self._effects, Effects()
        return effects

    def _expire(self, now: float) -> None:
        """Others get what workers hold that have not been heard of for a lease's length."""
        for worker in self._registry.take_silent(now - self.settings.lease_seconds):
            for lease in worker.held.values():
                if lease.active:
                    cancelled = self._effects.cancelled.setdefault(worker.facts.worker_id, [])
                    cancelled.append(lease.lease_id)
                    self._end_lease(lease, "silent")

    # Who gets which task: idle threads first, then workers' reserves

    def _fill(self, pool: WorkerPool, now: float, *, idle: bool) -> None:
        room = pool.idle if idle else pool.spare
        passed = []
        while room:
            _, worker = room.popitem(last=False)
            task = self._take(pool, worker, idle=idle)
            if task is None:
                passed.append(worker)
                if not self._has_work(pool):
                    break
            else:
                self._issue(task, worker, now)
        for worker in reversed(passed):
            room[worker.facts.worker_id] = worker
            room.move_to_end(worker.facts.worker_id, last=False)

    def _has_work(self, pool: WorkerPool) -> bool:
        if pool.job_id:
            job = self._queue.job(pool.job_id)
            return job is not None and bool(job.working)
        return not self._queue.order.empty

    def _take(self, pool: WorkerPool, worker: Worker, *, idle: bool) -> Task | None:
        """The next task for a worker, out of its queue."""
        if not pool.job_id:
            return self._queue.order.first(lambda job: self._take_from(job, worker, idle=idle))
        job = self._queue.job(pool.job_id)
        return None if job is None else self._take_from(job, worker, idle=idle)

    def _take_from(self, job: Job, worker: Worker, *, idle: bool) -> Task | None:
        for evaluation in job.working.values():
            task = self._next(job, evaluation, worker, idle=idle)
            if task is not None:
                self._queue.refresh(evaluation)
                return task
        return None

    def _next(
        self, job: Job, evaluation: EvaluationRecord, worker: Worker, *, idle: bool
    ) -> Task | None:
        if evaluation.returned:
            return evaluation.returned.popitem(last=False)[0]
        for task in evaluation.suspected:
            if _may_do(task, worker, idle=idle):
                del evaluation.suspected[task]
                return task
        return None if evaluation.slicer.exhausted else self._cut(job, evaluation)

    def _cut(self, job: Job, evaluation: EvaluationRecord) -> Task:
        """A new task, of a size that leaves something for every thread of the job's share."""
        settings, slicer = self.settings, evaluation.slicer
        rate = job.cost.seconds_per_packet
        threads = self._registry.threads_for(job.share.job_id) * self._queue.order.share_of(job)
        even = slicer.packets * rate / (max(threads, 1.0) * settings.tasks_per_thread)
        longest, shortest = settings.longest_task_seconds, settings.shortest_task_seconds
        if job.cost.known:
            shortest = max(shortest, threads * settings.handling_seconds)
        else:
            longest *= _FIRST_TASKS
        seconds = min(max(even, shortest), longest)
        piece, packets = slicer.cut(seconds / rate)
        return Task(evaluation, piece, packets)

    def _issue(self, task: Task, worker: Worker, now: float, *, hedge: bool = False) -> None:
        evaluation, settings = task.evaluation, self.settings
        job = self._queue.job_of(evaluation)
        seconds = task.packets * job.cost.seconds_per_packet
        before = len(worker.held) // worker.facts.threads
        late_at = now + settings.hedge_seconds + settings.hedge_factor * seconds * (1 + before)
        lease = Lease(next(self._lease_ids), task, worker.facts.worker_id, now, seconds, late_at)
        self._leases[lease.lease_id] = task.leases[lease.lease_id] = lease
        worker.held[lease.lease_id] = lease
        worker.credits -= 1
        self._registry.file(worker)
        if task not in evaluation.open:
            self._counts.queue_times.add(now - evaluation.arrived_at)
        evaluation.open[task] = None
        heapq.heappush(self._hedge_times, (late_at, lease.lease_id, lease))
        self._counts.tasks_assigned += 1
        if hedge:
            self._counts.hedged_tasks += 1
            self._late.pop(task, None)
        else:
            self._queue.order.charge(job, seconds)
            self._want(task)
        self._effects.assignments.append(
            Assignment(
                worker.facts.worker_id,
                lease.lease_id,
                evaluation.share,
                evaluation.evaluation_id,
                task.slice,
                evaluation.slicing,
            )
        )

    def _hedge(self, now: float) -> None:
        """Gives tasks that are late to threads that have nothing else to do."""
        while self._hedge_times and self._hedge_times[0][0] <= now:
            lease = heapq.heappop(self._hedge_times)[2]
            if lease.active:
                self._late[lease.task] = None
        if not any(pool.idle for pool in self._registry.pools()):
            return
        self._late = {task: None for task in self._late if task.active}
        for task in list(self._late):
            worker = self._idle_worker(task)
            if worker is not None:
                self._issue(task, worker, now, hedge=True)

    def _idle_worker(self, task: Task) -> Worker | None:
        if task.active >= self.settings.copies:
            return None
        for pool in self._registry.pools():
            if pool.job_id in ("", task.evaluation.share.job_id):
                for worker in pool.idle.values():
                    if _may_do(task, worker, idle=True):
                        return worker
        return None

    # What is seen from outside

    def has_evaluations(self, job_id: str = "") -> bool:
        """Whether there are open requests: of one job, or at all."""
        if not job_id:
            return bool(self._queue.evaluations)
        job = self._queue.job(job_id)
        return job is not None and job.evaluations > 0

    def saturated_seconds(self, job_id: str) -> float | None:
        """For how long all threads that serve this job only have been busy; None: it has none."""
        return self._registry.saturated_seconds(job_id)

    def snapshot(self) -> SchedulerSnapshot:
        """What the scheduler holds now and has counted; the counts go on changing."""
        workers = self._registry.workers.values()
        evaluations = self._queue.evaluations.values()
        return SchedulerSnapshot(
            counts=self._counts,
            workers=len(workers),
            busy_workers=sum(bool(worker.held) for worker in workers),
            silent_workers=sum(worker.silent for worker in workers),
            threads=sum(worker.facts.threads for worker in workers),
            quarantined_workers=len(self._quarantined),
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
        rate = self._queue.job_of(evaluation).cost.seconds_per_packet
        seconds = evaluation.slicer.packets * rate
        return 1 + int(seconds / self.settings.longest_task_seconds)


def _took_too_long(lease: Lease, worker: Worker) -> bool:
    """Whether a worker that leaves was there for much longer than its task was to take."""
    task = lease.task
    return worker.heard_at > lease.late_at and task.slice.simulations > 1 and not task.closed


def _may_do(task: Task, worker: Worker, *, idle: bool) -> bool:
    if task.is_with(worker.facts.worker_id):
        return False
    # What ends a worker should end it by itself, so that nothing else is suspected. Workers that
    # vanish together are missed one after the other: whose sign of life is older than the last end
    # may be gone already.
    return not task.ended or (
        idle and not worker.holds_a_suspect and worker.heard_at > task.ended_at
    )
