"""Step 5 of section 4.3: "Subdivide the most-used rule"."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import evaluation_pb2, progress_pb2
from remy_services.designer import changes, scoring
from remy_services.designer.paper.context import Context
from remy_services.designer.paper.paper_state import PaperState
from remy_services.designer.splitting import split_most_used
from remy_services.designer.strategy import StepReport


class SplitRule:
    """ "Find the most-used rule, and the median memory value that triggers it. Split the rule at
    this point, producing eight new rules (one per dimension of the memory-space), each with the
    same action as before. Then return to step 1."

    One rule for each orthant around the point: 2^k with k signals. A rule too small to be divided
    on any signal leaves its turn to the next most-used one.
    """

    def request(self, context: Context, state: PaperState) -> evaluation_pb2.EvaluationRequest:
        return context.request(
            progress_pb2.STEP_PURPOSE_SPLIT,
            state.epoch,
            table=state.table,
            candidates=[changes.unchanged()],
            specimens=context.spec.search.specimens,
            recording=evaluation_pb2.RECORDING_MEMORY,
        )

    def receive(
        self,
        context: Context,
        state: PaperState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PaperState, StepReport]:
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_SPLIT,
            rules=state.table.rule_count,
            score=scoring.estimate(context.scores(request, outcome)[0]),
        )
        state = replace(state, purpose=progress_pb2.STEP_PURPOSE_COUNT_USES)
        split = split_most_used(state.table, outcome.outcomes)
        if split is None:
            return state, report
        table = state.table.split(split.rule, split.thresholds)
        return state.with_structure(table), replace(report, events=[split.event(table.rule_count)])
