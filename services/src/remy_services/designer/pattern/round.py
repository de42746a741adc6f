"""What every round of a race does."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import evaluation_pb2, progress_pb2
from remy_services.designer import scoring
from remy_services.designer.pattern.context import Context
from remy_services.designer.pattern.pattern_state import PatternState
from remy_services.designer.strategy import StepReport


def after_round(
    context: Context,
    state: PatternState,
    purpose: progress_pb2.StepPurpose,
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
) -> tuple[PatternState, StepReport]:
    """The state with the round run, and a report with the leader's gain so far."""
    scores = context.scores(request, outcome)
    race = state.race.after_round(scores)
    leader = race.leader()
    report = StepReport(
        purpose=purpose,
        rules=state.current.table.rule_count,
        score=scoring.estimate(scores[0]),
        gain=leader.gain if leader is not None else None,
    )
    return replace(state, race=race), report
