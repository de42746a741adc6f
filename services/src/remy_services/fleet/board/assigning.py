"""Which worker gets which task now."""

from __future__ import annotations

from remy_services.fleet.board.effects import Assignment
from remy_services.fleet.board.fairness import Job
from remy_services.fleet.board.records import EvaluationRecord, Lease, Task
from remy_services.fleet.board.state import BoardState
from remy_services.fleet.board.workers import Pool, Worker

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
