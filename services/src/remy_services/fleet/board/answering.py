"""What workers say of the tasks that they were given, and what becomes of them for it.

An evaluation is a pure function, and a worker has proved its simulator when it joined: the first
intact answer to a task holds. A task that was hedged or lent anew may be answered again; a second
answer that differs from the first says that one of two is wrong and not which, so the job fails. A
result that is damaged or impossible says something of its worker alone.
"""

from __future__ import annotations

from remy_farm.v1 import evaluation_pb2
from remy_services.fleet.board import closing
from remy_services.fleet.board.effects import Contradiction, Refusal
from remy_services.fleet.board.leaving import dismiss
from remy_services.fleet.board.records import Answer, Lease, Task
from remy_services.fleet.board.state import BoardState

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
        closing.fail(state, lease.task.evaluation, Refusal(why))


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
        closing.fail(state, task.evaluation, Refusal(why))
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
    closing.finish_if_complete(state, evaluation)


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
        closing.fail(state, evaluation, contradiction)
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
