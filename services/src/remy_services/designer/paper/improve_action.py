"""Step 3 of section 4.3: "Improve that action until we can't anymore"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from remy_farm.v1 import evaluation_pb2, progress_pb2
from remy_services.designer import changes, scoring
from remy_services.designer.paper.context import Context
from remy_services.designer.paper.paper_state import PaperState
from remy_services.designer.strategy import StepReport
from remy_simulator.messages import action_message


class ImproveAction:
    """One round: "evaluate roughly 100 candidate increments to the current action".

    Candidate 0 is the current action, so that every round compares like with like. The streams are
    named by the visit to the rule and not by the round: "If any of the candidates is an
    improvement, replace the action with the best new action and repeat the search, still with the
    same specimen networks and random seed."
    """

    def request(self, context: Context, state: PaperState) -> evaluation_pb2.EvaluationRequest:
        neighbours = context.grid.neighbours(state.table.action(state.rule))
        return context.request(
            progress_pb2.STEP_PURPOSE_IMPROVE,
            state.epoch,
            state.visits,
            table=state.table,
            candidates=[
                changes.unchanged(),
                *(changes.one_rule(state.rule, action) for action in neighbours),
            ],
            specimens=context.spec.search.specimens,
        )

    def receive(
        self,
        context: Context,
        state: PaperState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PaperState, StepReport]:
        scores = context.scores(request, outcome)
        best = _best(scores)
        gain = scoring.estimate_gain(scores[0], scores[best])
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_IMPROVE,
            rules=state.table.rule_count,
            score=scoring.estimate(scores[0]),
            gain=gain,
        )
        if best == 0:
            return _rule_done(state), report
        (change,) = request.candidates[best].actions.changes
        improved = progress_pb2.RuleImproved(
            rule=state.rule,
            before=action_message(state.table.action(state.rule)),
            after=change.action,
            gain=gain,
        )
        state = replace(state, table=changes.apply(state.table, request.candidates[best].actions))
        return state, replace(report, events=[progress_pb2.ProgressEvent(rule_improved=improved)])


def _best(scores: Sequence[Sequence[float]]) -> int:
    """The candidate with the highest mean; of equals the first, so that a tie is no improvement."""
    if not scores[0]:
        return 0
    means = [scoring.mean(row) for row in scores]
    return means.index(max(means))


def _rule_done(state: PaperState) -> PaperState:
    """ "Otherwise, increment the epoch number of the current rule and go back to step 2." """
    epochs = list(state.rule_epochs)
    epochs[state.rule] += 1
    return replace(state, purpose=progress_pb2.STEP_PURPOSE_COUNT_USES, rule_epochs=tuple(epochs))
