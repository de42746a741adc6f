"""Step 4 of section 4.3, "If we run out of rules in this epoch", behind a test of its own.

The paper takes over whatever scored best on the 16 or so networks that it was chosen on. Here the
epoch's table must also beat the one that the epoch began with on networks that had no part in the
choice, or the epoch is rolled back.
"""

from __future__ import annotations

from remy_farm.v1 import evaluation_pb2, progress_pb2
from remy_services.designer import changes, scoring
from remy_services.designer.paper.context import Context
from remy_services.designer.paper.paper_state import PaperState
from remy_services.designer.strategy import StepReport, Verdict
from remy_simulator import RuleTable


class EndEpoch:
    """ "Increment the global epoch. If the new epoch is a multiple of a parameter, K, continue to
    step 5. Otherwise go back to step 1." """

    def request(self, context: Context, state: PaperState) -> evaluation_pb2.EvaluationRequest:
        return comparison_request(context, state, progress_pb2.STEP_PURPOSE_VALIDATE)

    def receive(
        self,
        context: Context,
        state: PaperState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PaperState, StepReport]:
        verdict = comparison_verdict(context, state, request, outcome)
        comparison = verdict.comparison
        record = progress_pb2.EpochRecord(
            epoch=state.epoch,
            rules=state.table.rule_count,
            rules_changed=len(changes.differences(state.epoch_table, state.table).changes),
            comparison=comparison,
            evaluations=state.effort.evaluations,
            simulated_packets=state.effort.simulated_packets,
        )
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_VALIDATE,
            rules=state.table.rule_count,
            score=comparison.before if comparison.HasField("before") else None,
            gain=comparison.gain if comparison.HasField("gain") else None,
            epoch=record,
        )
        split_is_due = (state.epoch + 1) % context.spec.search.paper.epochs_per_split == 0
        purpose = (
            progress_pb2.STEP_PURPOSE_SPLIT
            if split_is_due
            else progress_pb2.STEP_PURPOSE_COUNT_USES
        )
        return state.next_epoch(purpose, verdict.table or state.epoch_table), report


def comparison_request(
    context: Context, state: PaperState, purpose: progress_pb2.StepPurpose
) -> evaluation_pb2.EvaluationRequest:
    """The epoch's first table (candidate 0) and its present one, on fresh specimens."""
    improved = changes.differences(state.epoch_table, state.table)
    candidates = [changes.unchanged()]
    if improved.changes:
        candidates.append(changes.several_rules(improved))
    return context.request(
        purpose,
        state.epoch,
        state.visits,
        table=state.epoch_table,
        candidates=candidates,
        specimens=context.spec.search.paper.validation_specimens,
    )


def comparison_verdict(
    context: Context,
    state: PaperState,
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
) -> Verdict:
    """Whether the epoch's present table may replace its first one."""
    scores = context.scores(request, outcome)
    comparison = scoring.compare(scores[0], scores[-1])
    table: RuleTable | None = state.table if comparison.accepted else None
    return Verdict(comparison, table)
