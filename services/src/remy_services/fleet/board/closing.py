"""How evaluations end."""

from __future__ import annotations

from remy_services.fleet.board.effects import Completion, Contradiction, Quarantine, Refusal
from remy_services.fleet.board.records import EvaluationRecord
from remy_services.fleet.board.state import BoardState


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
