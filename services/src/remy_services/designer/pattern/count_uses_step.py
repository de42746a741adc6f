"""An epoch begins: which rules are used, and in which order they will be polished."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import evaluation_pb2, progress_pb2
from remy_services.designer import scoring
from remy_services.designer.pattern.context import Context
from remy_services.designer.pattern.pattern_state import PatternState
from remy_services.designer.pattern.visit import begin_visit
from remy_services.designer.strategy import StepReport
from remy_services.designer.uses import by_use, total_uses


class CountUsesStep:
    """Each used rule has one turn an epoch, the most-used first. What nothing uses stays."""

    def request(self, context: Context, state: PatternState) -> evaluation_pb2.EvaluationRequest:
        return context.recording_request(
            progress_pb2.STEP_PURPOSE_COUNT_USES,
            state.epoch,
            table=state.current.table,
            recording=evaluation_pb2.RECORDING_USES,
        )

    def receive(
        self,
        context: Context,
        state: PatternState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PatternState, StepReport]:
        rules = state.current.table.rule_count
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_COUNT_USES,
            rules=rules,
            score=scoring.estimate(context.scores(request, outcome)[0]),
        )
        queue = tuple(by_use(total_uses(outcome.outcomes, rules)))
        return begin_visit(context, replace(state, queue=queue)), report
