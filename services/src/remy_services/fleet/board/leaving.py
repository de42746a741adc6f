"""Workers that come, go, fall silent, or are ended by what they were given."""

from __future__ import annotations

from remy_services.fleet.board import closing
from remy_services.fleet.board.effects import Quarantine
from remy_services.fleet.board.records import Task
from remy_services.fleet.board.state import BoardState
from remy_services.fleet.board.workers import Worker, WorkerFacts


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
    closing.fail(state, task.evaluation, Quarantine(request, tuple(sorted(task.ended))))
