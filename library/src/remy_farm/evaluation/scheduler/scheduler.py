"""The task scheduler, a state machine that is told about events and returns effects."""

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
    EvaluationRecord,
    Lease,
    LostWorker,
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
from remy_farm.evaluation.tasks import Slicer, nominal_packets
from remy_proto.v1 import evaluation_pb2
from remy_simulator import InvalidRequest
from remy_simulator.columns import Slice, Slicing, shared_part

# Length of a job's first tasks, relative to the longest task: they measure the cost of simulations.
_FIRST_TASK_LENGTH = 0.1
_QUARANTINED_REMEMBERED = 4096


class WorkerQuarantined(Exception):
    """A quarantined worker has tried to join. The text is one sentence for people."""


class TaskScheduler:
    """Assigns tasks of many jobs' requests to workers; the package describes its contract.

    The methods are ordered by subject: evaluations, workers, answers, copies of tasks, time, choice
    of tasks for workers, and status.
    """

    def __init__(
        self, settings: SchedulerSettings | None = None, *, first_lease_id: int = 1
    ) -> None:
        """Creates a scheduler without evaluations and workers.

        The `first_lease_id` of successive schedulers should differ by more than the number of
        tasks, so that a scheduler ignores late answers that are meant for an earlier one.
        """
        self.settings = settings or SchedulerSettings()
        self._lease_ids = count(first_lease_id)
        self._evaluation_ids = count(1)
        self._advanced_at = 0.0
        self._registry = WorkerRegistry()
        self._queue = WorkQueue()
        # A heap of leases by the time at which they become late; and the tasks with a late lease,
        # those first that have been late for longest.
        self._hedge_times: list[tuple[float, int, Lease]] = []
        self._late: dict[Task, None] = {}
        self._counts = Counts()
        self._effects = Effects()
        # Leases that may still be answered.
        self._leases: dict[int, Lease] = {}
        # Open tasks that have lost workers.
        self._suspects: dict[Task, None] = {}
        # Hosts with crashed workers; None if crashes are not observed.
        self._crashed_hosts: frozenset[str] | None = None
        # Reasons by quarantined worker.
        self._quarantined: OrderedDict[str, str] = OrderedDict()

    # Evaluations

    def submit(self, share: Share, request: evaluation_pb2.EvaluationRequest) -> int:
        """Submits a packed request. Returns the id by which its end is reported."""
        evaluation_id = next(self._evaluation_ids)
        job = self._queue.remember(share)
        nominal = nominal_packets(request)
        slicer = Slicer(len(request.candidates), job.cost.expected_packets(nominal))
        simulations = len(request.candidates) * len(nominal)
        evaluation = EvaluationRecord(
            evaluation_id, share, Slicing(request), nominal, slicer, simulations
        )
        self._queue.add(evaluation)
        if job.contradiction is not None:
            self._fail(evaluation, job.contradiction)
            job.contradiction = None
        return evaluation_id

    def withdraw(self, evaluation_id: int) -> None:
        """Withdraws an evaluation. Its end is not reported if it has not been reported yet."""
        self._effects.ended.pop(evaluation_id, None)
        evaluation = self._queue.evaluations.get(evaluation_id)
        if evaluation is not None:
            self._close(evaluation, "withdrawn")

    def progress(self, evaluation_id: int) -> EvaluationProgress | None:
        """The progress of an evaluation; None once it has ended."""
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
        """Ends an evaluation and cancels its tasks; `reason` is counted for its leases."""
        evaluation.closed = True
        for task in (*evaluation.open, *evaluation.done):
            self._cancel_copies(task, reason)
            self._drop_leases(task)
        self._queue.remove(evaluation)

    # Workers

    def join(self, facts: WorkerFacts, now: float) -> None:
        """Adds a worker. It gets no tasks before it has been given credit.

        If a worker of this name is still there, its connection is dead, and it leaves first. Raises
        WorkerQuarantined.
        """
        why = self._quarantined.get(facts.worker_id)
        if why is not None:
            raise WorkerQuarantined(f"worker {facts.worker_id} is quarantined: {why}")
        if facts.worker_id in self._registry.workers:
            self._dismiss(facts.worker_id, "lost")
        self._registry.add(facts, now)
        self._counts.workers_joined += 1
        # The worker was not killed: it only lost its connection.
        for task in list(self._suspects):
            task.lost_workers.pop(facts.worker_id, None)
            if not task.lost_workers:
                del self._suspects[task]

    def credit(self, worker_id: str, tasks: int, now: float) -> None:
        """Allows a worker `tasks` more tasks. Each answer also allows it one more task."""
        worker = self._registry.workers.get(worker_id)
        if worker is not None:
            worker.credits += tasks
            self._registry.touch(worker, now)
            self._registry.requeue(worker)

    def heartbeat(self, worker_id: str, now: float) -> None:
        """Records that a worker is alive."""
        worker = self._registry.workers.get(worker_id)
        if worker is not None:
            self._registry.touch(worker, now)

    def record_goodbye(self, worker_id: str, why: str = "goodbye") -> None:
        """Records that a worker will leave. It gets no more tasks, but may still answer.

        `why` is one word, which is counted.
        """
        worker = self._registry.workers.get(worker_id)
        if worker is not None and not worker.goodbye:
            self._registry.start_leaving(worker, why)

    def leave(self, worker_id: str, now: float) -> None:
        """Removes a worker. If it left without a goodbye, its running tasks become suspects."""
        worker = self._registry.workers.get(worker_id)
        if worker is None:
            return
        if worker.goodbye:
            self._counts.workers_left[worker.goodbye] += 1
            self._dismiss(worker_id, "goodbye")
            return
        was_in_contact = now - worker.last_seen_at <= self.settings.recent_contact_seconds
        self._counts.workers_left["lost" if was_in_contact else "silent"] += 1
        held = {lease.task.evaluation.share.job_id for lease in worker.held.values()}
        self._counts.workers_lost.update(held | {worker.facts.job_id} - {""})
        if was_in_contact:
            self._registry.losses += 1
            self._suspect_tasks(worker, now)
        self._dismiss(worker_id, "lost")

    def set_crashed_hosts(self, hosts: Collection[str]) -> None:
        """Reports the hosts on which workers that serve a single job are known to have crashed.

        From the first call on, a lost worker of a single job counts against its task only if its
        host is reported, because otherwise its machine may have been lost. Each call must repeat
        the hosts of earlier calls that are still known.
        """
        self._crashed_hosts = frozenset(hosts)
        for task in list(self._suspects):
            self._quarantine_if_poison(task)

    def _dismiss(self, worker_id: str, reason: str) -> None:
        """Removes a worker and returns its tasks to the queue."""
        worker = self._registry.workers[worker_id]
        self._registry.remove(worker)
        for lease in worker.held.values():
            self._end_lease(lease, reason)
            if _was_late(lease, worker):
                self._divide(lease.task)
            if lease.task.evaluation.closed or lease.task.divided:
                self._leases.pop(lease.lease_id, None)

    def _suspect_tasks(self, worker: Worker, now: float) -> None:
        """Suspects the running tasks of a lost worker of having killed it.

        If none of them was suspected before, all become suspects. Suspects then run one per worker,
        so that a further loss is attributed to one of them.
        """
        active = [lease for lease in worker.held.values() if lease.active]
        running = active[: worker.facts.threads]
        is_observed = self._crashed_hosts is not None and bool(worker.facts.job_id)
        host = worker.facts.host if is_observed else ""
        for lease in [lease for lease in running if lease.task.lost_workers] or running:
            task = lease.task
            if _was_late(lease, worker):
                continue
            # A loss by chance could have come at any time during the task's expected length.
            seconds = max(now - lease.issued_at, lease.seconds)
            task.lost_workers[worker.facts.worker_id] = LostWorker(host, seconds)
            task.last_loss_at = now
            self._suspects[task] = None
            self._quarantine_if_poison(task)

    def _quarantine_if_poison(self, task: Task) -> None:
        for worker in task.lost_workers.values():
            crashed = self._crashed_hosts
            if worker.host and crashed is not None and worker.host in crashed:
                worker.host, worker.seconds = "", 0.0
        killed = {name: worker for name, worker in task.lost_workers.items() if not worker.host}
        if len(killed) < self.settings.poison_losses or task.evaluation.closed:
            return
        # If machines are taken away every minute, some task is on several of them by chance.
        probability = self._registry.coincidence_probability(killed.values())
        if (
            probability <= self.settings.coincidence_probability
            or len(killed) >= self.settings.maximum_poison_losses
        ):
            self._counts.quarantined_tasks += 1
            request = shared_part(task.evaluation.request)
            request.MergeFrom(task.evaluation.slicing.slice(task.slice))
            self._fail(task.evaluation, Quarantine(request, tuple(sorted(killed))))

    def _count_bad_result(self, worker_id: str, what: str) -> None:
        """Counts a bad result, and quarantines a worker that has sent too many of them."""
        self._counts.bad_results[what] += 1
        worker = self._registry.workers.get(worker_id)
        if worker is None:
            return
        worker.bad_results += 1
        if worker.bad_results < self.settings.bad_results:
            return
        why = f"{worker.bad_results} of its results were damaged or implausible"
        self._quarantined[worker_id] = why
        if len(self._quarantined) > _QUARANTINED_REMEMBERED:
            self._quarantined.popitem(last=False)
        self._counts.quarantined_workers += 1
        self._counts.workers_left["quarantined"] += 1
        self._effects.expelled[worker_id] = why
        self._dismiss(worker_id, "quarantined")

    # Answers: one per lease
    #
    # The first undamaged answer to a task is accepted, because an evaluation is a pure function and
    # a worker has proved its simulator when it joined. A task that was assigned to several workers
    # may be answered again. If the answers differ, one of them is wrong, but it is unknown which,
    # so the job fails. A damaged or implausible result only counts against its worker.

    def task(self, lease_id: int) -> tuple[Slicing, Slice] | None:
        """The request and the slice of a lease, for checking its result.

        Returns None if an answer has no effect, because there is no accepted answer to compare it
        with and none is awaited.
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
        """Accepts a result that has passed its checks; `sha256` is the serialized outcome's."""
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
            nominal = evaluation.nominal_packets[specimens.start : specimens.stop]
            job.cost.learn(nominal, outcome.packets_sent, task.packets, cpu_seconds)
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
        """Reports that a worker's simulator has refused the task, which ends the evaluation.

        `why` is one sentence for people. With `over_limit`, the task was stopped because it sent
        more packets than the limit of its share.
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

    def reject_implausible(
        self, worker_id: str, lease_id: int, sha256: bytes, why: str, now: float
    ) -> None:
        """Rejects an undamaged result that cannot be right, and counts it against the worker.

        If the same bytes come again, the request is at fault: its evaluation fails, and the first
        worker's count is corrected.
        """
        lease = self._answered(worker_id, lease_id, now, reason="bad result")
        task = None if lease is None or lease.task.closed else lease.task
        if task is not None and sha256 in task.implausible:
            self._counts.bad_results["impossible"] += 1
            first_worker = self._registry.workers.get(task.implausible[sha256])
            if first_worker is not None:
                first_worker.bad_results -= 1
            self._fail(task.evaluation, InvalidRequest(why))
            return
        if task is not None:
            task.implausible[sha256] = worker_id
        self._count_bad_result(worker_id, "impossible")
        if task is not None:
            self._requeue_if_unassigned(task)

    def reject(self, worker_id: str, lease_id: int, what: str, now: float) -> None:
        """Rejects a damaged result and counts it against the worker.

        `what` names the damage in a word or two, for the counter.
        """
        lease = self._answered(worker_id, lease_id, now, reason="bad result")
        self._count_bad_result(worker_id, what)
        if lease is not None:
            self._requeue_if_unassigned(lease.task)

    def give_back(self, worker_id: str, lease_ids: Sequence[int], now: float) -> None:
        """Takes back tasks that the worker will not do."""
        for lease_id in lease_ids:
            lease = self._answered(worker_id, lease_id, now, reason="returned")
            if lease is not None:
                self._requeue_if_unassigned(lease.task)

    def _answered(
        self, worker_id: str, lease_id: int, now: float, reason: str | None = None
    ) -> Lease | None:
        """Ends the lease that a worker has answered, and returns it; None if it is not valid.

        `reason` is counted if the lease was active; None is for good answers.
        """
        worker = self._registry.workers.get(worker_id)
        if worker is None:
            return None
        self._registry.touch(worker, now)
        lease = self._leases.get(lease_id)
        if lease is None or lease.worker_id != worker_id:
            self._counts.unknown_leases += 1
            return None
        del self._leases[lease_id]
        lease.task.leases.pop(lease_id, None)
        if worker.held.pop(lease_id, None) is not None:
            worker.credits += 1
            self._registry.requeue(worker)
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
        """Fails the job if a second answer to a task differs from the accepted one.

        The search may have used the accepted answer already. If the job has no open evaluation, its
        next one fails.
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
        evaluations = [
            each for each in self._queue.evaluations.values() if each.share.job_id == job_id
        ]
        for evaluation in evaluations:
            self._fail(evaluation, contradiction)
        job = self._queue.job(job_id)
        if job is not None and not evaluations:
            job.contradiction = contradiction

    def _version(self, worker_id: str) -> str:
        return self._registry.workers[worker_id].facts.version

    # Copies of a task

    def _requeue_if_unassigned(self, task: Task) -> None:
        """Queues an open task to be assigned again, unless a worker still has it."""
        if task.closed:
            return
        if task.active:
            self._queue.take_out(task)
        else:
            self._queue.put_back(task)

    def _end_lease(self, lease: Lease, reason: str) -> None:
        """Deactivates a lease, and queues its task to be assigned again if no other has it."""
        if lease.active:
            lease.active = False
            self._counts.leases_ended[reason] += 1
            self._requeue_if_unassigned(lease.task)

    def _divide(self, task: Task) -> None:
        """Replaces a task that takes longer than workers stay by smaller pieces.

        Its other copies are cancelled as well, because their workers may leave just as soon.
        """
        task.divided = True
        self._queue.take_out(task)
        self._cancel_copies(task, "divided")
        self._drop_leases(task)
        del task.evaluation.open[task]
        for piece in task.pieces(self.settings.pieces_per_task):
            task.evaluation.open[piece] = None
            self._queue.put_back(piece)

    def _drop_leases(self, task: Task) -> None:
        """Detaches a closed task's leases. Workers that are still there can answer them."""
        for lease in task.leases.values():
            # A worker that has left cannot answer.
            worker = self._registry.workers.get(lease.worker_id)
            if worker is None or lease.lease_id not in worker.held:
                del self._leases[lease.lease_id]
        task.leases.clear()

    def _cancel_copies(self, task: Task, reason: str) -> None:
        """Cancels all active copies of a task."""
        for lease in task.leases.values():
            if lease.active:
                lease.active = False
                self._counts.leases_ended[reason] += 1
                self._effects.cancelled.setdefault(lease.worker_id, []).append(lease.lease_id)
        self._suspects.pop(task, None)

    # Time

    def advance(self, now: float) -> Effects:
        """Ends the leases of silent workers, assigns tasks, and returns the effects to carry out.

        Call it after every event, and several times a second.
        """
        self._registry.advance_clock(now - self._advanced_at)
        self._advanced_at = now
        self._expire(now)
        self._queue.stamp_arrivals(now)
        for pool in self._registry.pools():
            self._fill(pool, now, idle=True)
            self._fill(pool, now, idle=False)
        self._hedge(now)
        self._registry.update_saturation()
        effects, self._effects = self._effects, Effects()
        return effects

    def _expire(self, now: float) -> None:
        """Ends the leases of workers that have been silent for `lease_seconds`."""
        for worker in self._registry.pop_silent(now - self.settings.lease_seconds):
            for lease in worker.held.values():
                if lease.active:
                    cancelled = self._effects.cancelled.setdefault(worker.facts.worker_id, [])
                    cancelled.append(lease.lease_id)
                    self._end_lease(lease, "silent")

    # Choice of tasks: for idle threads first, then for workers' reserves

    def _fill(self, pool: WorkerPool, now: float, *, idle: bool) -> None:
        """Assigns tasks to workers with idle threads, or to workers with room in reserve."""
        room = pool.idle if idle else pool.spare
        skipped = []
        while room:
            _, worker = room.popitem(last=False)
            task = self._take(pool, worker, idle=idle)
            if task is None:
                skipped.append(worker)
                if not self._has_work(pool):
                    break
            else:
                self._issue(task, worker, now)
        for worker in reversed(skipped):
            room[worker.facts.worker_id] = worker
            room.move_to_end(worker.facts.worker_id, last=False)

    def _has_work(self, pool: WorkerPool) -> bool:
        if pool.job_id:
            job = self._queue.job(pool.job_id)
            return job is not None and bool(job.pending)
        return not self._queue.order.empty

    def _take(self, pool: WorkerPool, worker: Worker, *, idle: bool) -> Task | None:
        """Takes the next task for a worker from the queue; None if there is none for it."""
        if not pool.job_id:
            return self._queue.order.first(lambda job: self._take_from(job, worker, idle=idle))
        job = self._queue.job(pool.job_id)
        return None if job is None else self._take_from(job, worker, idle=idle)

    def _take_from(self, job: Job, worker: Worker, *, idle: bool) -> Task | None:
        for evaluation in job.pending.values():
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
        """Cuts a new task, small enough to leave work for all threads of the job's share."""
        settings, slicer = self.settings, evaluation.slicer
        rate = job.cost.seconds_per_packet
        threads = self._registry.threads_for(job.share.job_id) * self._queue.order.share_of(job)
        even = slicer.packets * rate / (max(threads, 1.0) * settings.tasks_per_thread)
        longest, shortest = settings.longest_task_seconds, settings.shortest_task_seconds
        if job.cost.has_data:
            shortest = max(shortest, threads * settings.handling_seconds)
        else:
            longest *= _FIRST_TASK_LENGTH
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
        self._registry.requeue(worker)
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
            self._requeue_if_unassigned(task)
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
        """Assigns late tasks to idle threads as well."""
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
        if task.active >= self.settings.maximum_copies:
            return None
        for pool in self._registry.pools():
            if pool.job_id in ("", task.evaluation.share.job_id):
                for worker in pool.idle.values():
                    if _may_do(task, worker, idle=True):
                        return worker
        return None

    # Status

    def has_evaluations(self, job_id: str = "") -> bool:
        """Whether a job has open evaluations; with an empty `job_id`, whether any job has."""
        if not job_id:
            return bool(self._queue.evaluations)
        job = self._queue.job(job_id)
        return job is not None and job.evaluations > 0

    def saturated_seconds(self, job_id: str) -> float | None:
        """Total time for which all threads that serve only this job were busy.

        Returns None if there are no such threads.
        """
        return self._registry.saturated_seconds(job_id)

    def snapshot(self) -> SchedulerSnapshot:
        """The scheduler's present state. Its counters are live and keep changing."""
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
        """Estimates how many tasks of full length remain to be cut."""
        if evaluation.slicer.exhausted:
            return 0
        rate = self._queue.job_of(evaluation).cost.seconds_per_packet
        seconds = evaluation.slicer.packets * rate
        return 1 + int(seconds / self.settings.longest_task_seconds)


def _was_late(lease: Lease, worker: Worker) -> bool:
    """Whether a task was late when its worker left, and can be divided."""
    task = lease.task
    return worker.last_seen_at > lease.late_at and task.slice.simulations > 1 and not task.closed


def _may_do(task: Task, worker: Worker, *, idle: bool) -> bool:
    """Whether a worker may be assigned a task that was assigned before."""
    if task.is_with(worker.facts.worker_id):
        return False
    # A suspect runs alone, so that no other task is suspected if the worker is killed. Losses of
    # workers that vanish together are noticed one after the other, so a worker that was last heard
    # from before the last loss may be gone already.
    return not task.lost_workers or (
        idle and not worker.holds_a_suspect and worker.last_seen_at > task.last_loss_at
    )
