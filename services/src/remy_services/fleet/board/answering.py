"""What workers say of the tasks that they were given."""

from __future__ import annotations

from remy_farm.v1 import evaluation_pb2
from remy_services.fleet.board.judging import quarantine, vote
from remy_services.fleet.board.records import Lease
from remy_services.fleet.board.state import BoardState
from remy_services.fleet.board.verdict import Vote


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
    if evaluation.closed:
        state.counts.duplicate_results += 1
        return
    evaluation.cpu_seconds += cpu_seconds
    job = state.queue.job_of(evaluation)
    job.cost.learn(lease.task.packets, cpu_seconds)
    state.queue.order.charge(job, cpu_seconds - lease.seconds)
    if lease.task.accepted is not None:
        state.counts.duplicate_results += 1
        return
    vote(state, lease.task, worker_id, Vote(sha256, outcome))


def object_to(
    state: BoardState, worker_id: str, lease_id: int, key: bytes, why: str, now: float
) -> None:
    """The task has no usable outcome: the simulator refuses it, or what it says cannot be."""
    lease = _answered(state, worker_id, lease_id, now)
    if lease is not None and not lease.task.closed:
        vote(state, lease.task, worker_id, Vote(key, None, objection=why))


def reject(state: BoardState, worker_id: str, lease_id: int, what: str, now: float) -> None:
    """A result that is damaged: it says nothing of the task, but something of the worker."""
    lease = _answered(state, worker_id, lease_id, now, reason="bad result")
    state.counts.bad_results[what] += 1
    worker = state.roster.workers.get(worker_id)
    if worker is not None:
        worker.bad_results += 1
        if worker.bad_results >= state.settings.bad_results:
            quarantine(state, worker_id, f"{worker.bad_results} of its results were damaged")
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
