"""From answers to accepted results, and what follows where answers differ."""

from __future__ import annotations

from dataclasses import replace

from remy_services.fleet.board import closing
from remy_services.fleet.board.effects import Refusal
from remy_services.fleet.board.records import EvaluationRecord, Task
from remy_services.fleet.board.state import BoardState
from remy_services.fleet.board.verdict import Vote, disputed, leading, missing
from remy_services.fleet.board.workers import Roster

_QUARANTINED_REMEMBERED = 4096


def anybody_new(task: Task, roster: Roster) -> bool:
    """Whether a worker that has not answered the task can be counted on to do it."""
    job_id = task.evaluation.share.job_id
    answered = sum(roster.serves(worker_id, job_id) for worker_id in task.votes)
    return roster.workers_for(job_id) > answered


def may_repeat(task: Task, worker_id: str, roster: Roster) -> bool:
    """Whether a worker that has answered should do the task again.

    Only where its answer is in doubt, once, and where nobody else is there to ask. A worker that
    then contradicts itself is wrong.
    """
    vote = task.votes[worker_id]
    in_doubt = disputed(task.votes) or vote.outcome is None
    return in_doubt and vote.times < 2 and not anybody_new(task, roster)


def vote(state: BoardState, task: Task, worker_id: str, new: Vote) -> None:
    """A worker answers a task that is not closed."""
    old = task.votes.get(worker_id)
    if old is not None and old.key != new.key:
        quarantine(state, worker_id, "it gave two different results for one task")
        return
    task.votes[worker_id] = new if old is None else replace(old, times=old.times + 1)
    judge(state, task)


def judge(state: BoardState, task: Task) -> None:
    """Accepts an answer if there is one that holds; else has the task done by somebody else."""
    if task.closed:
        return
    if task.votes and (not missing(task.votes, task.wanted) or _is_final(state, task)):
        _accept(state, task)
    else:
        state.want(task)


def _is_final(state: BoardState, task: Task) -> bool:
    """Whether an undisputed answer has to do, since those who gave it are all there is to ask."""
    job_id = task.evaluation.share.job_id
    present = [each for each in task.votes if state.roster.serves(each, job_id)]
    return (
        bool(present)
        and not disputed(task.votes)
        and not anybody_new(task, state.roster)
        and not any(may_repeat(task, worker_id, state.roster) for worker_id in present)
    )


def _accept(state: BoardState, task: Task) -> None:
    evaluation = task.evaluation
    right, _ = leading(task.votes)
    accepted = task.votes[right]
    wrong = [worker for worker, vote in task.votes.items() if vote.key != accepted.key]
    if wrong:
        state.counts.disagreements += 1
    if accepted.outcome is None:
        closing.fail(state, evaluation, Refusal(accepted.objection))
    else:
        # Equal outcomes are kept once.
        task.votes = {
            worker: accepted for worker, vote in task.votes.items() if vote.key == accepted.key
        }
        task.accepted = accepted
        state.queue.take_out(task)
        state.close_leases(task, "done elsewhere")
        del evaluation.open[task]
        evaluation.done[task] = None
        _count(state, evaluation, task, 1)
    for worker_id in wrong:
        quarantine(state, worker_id, "its result for a task differs from those of two others")
    closing.finish_if_complete(state, evaluation)


def quarantine(state: BoardState, worker_id: str, why: str) -> None:
    """A worker gets nothing any more, and what only it has said is not believed any more."""
    if worker_id in state.quarantined:
        return
    state.quarantined[worker_id] = why
    if len(state.quarantined) > _QUARANTINED_REMEMBERED:
        state.quarantined.popitem(last=False)
    state.counts.quarantined_workers += 1
    state.effects.expelled[worker_id] = why
    worker = state.roster.workers.get(worker_id)
    if worker is not None:
        dismiss(state, worker_id, "quarantined")
    for evaluation in list(state.queue.evaluations.values()):
        for task in [task for task in evaluation.done if set(task.votes) == {worker_id}]:
            _revoke(state, task)
        for task in [task for task in evaluation.open if worker_id in task.votes]:
            del task.votes[worker_id]
            judge(state, task)
    judge_all(state)


def dismiss(state: BoardState, worker_id: str, reason: str) -> None:
    """A worker is gone; others get what it had."""
    worker = state.roster.workers[worker_id]
    state.roster.remove(worker)
    for lease in worker.held.values():
        state.end_lease(lease, reason)
        if lease.task.closed:
            state.leases.pop(lease.lease_id, None)


def judge_all(state: BoardState) -> None:
    """Fewer workers are there: answers that were to be confirmed may have to do as they are."""
    for evaluation in list(state.queue.evaluations.values()):
        for task in list(evaluation.particular):
            judge(state, task)


def _revoke(state: BoardState, task: Task) -> None:
    evaluation = task.evaluation
    _count(state, evaluation, task, -1)
    state.counts.revoked_results += 1
    task.accepted = None
    task.votes = {}
    del evaluation.done[task]
    evaluation.open[task] = None
    state.want(task)


def _count(state: BoardState, evaluation: EvaluationRecord, task: Task, sign: int) -> None:
    assert task.accepted is not None
    assert task.accepted.outcome is not None
    evaluation.simulations_done += sign * task.slice.simulations
    evaluation.simulated_packets += sign * sum(
        sum(result.packets_sent) for result in task.accepted.outcome.outcomes
    )
    state.counts.tasks_done += sign
    state.counts.simulations_done += sign * task.slice.simulations
    if sign > 0:
        evaluation.workers.update(task.votes)
