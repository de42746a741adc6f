"""Step 2 of section 4.3: "Find the most-used rule in this epoch"."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import evaluation_pb2, progress_pb2
from remy_services.designer import changes, scoring
from remy_services.designer.paper.context import Context
from remy_services.designer.paper.paper_state import PaperState
from remy_services.designer.strategy import StepReport
from remy_services.designer.uses import by_use, total_uses


class ChooseRule:
    """ "Simulate the current RemyCC and see which rule in the current epoch receives the most use.

    If no such rules were used, go to step 4." Rules that nothing uses stay as they are.
    """

    def request(self, context: Context, state: PaperState) -> evaluation_pb2.EvaluationRequest:
        return context.request(
            progress_pb2.STEP_PURPOSE_COUNT_USES,
            state.epoch,
            state.visits,
            table=state.table,
            candidates=[changes.unchanged()],
            specimens=context.spec.search.specimens,
            recording=evaluation_pb2.RECORDING_USES,
        )

    def receive(
        self,
        context: Context,
        state: PaperState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PaperState, StepReport]:
        uses = total_uses(outcome.outcomes, state.table.rule_count)
        in_epoch = [rule for rule in by_use(uses) if state.rule_epochs[rule] == state.epoch]
        events = []
        if in_epoch:
            rule = in_epoch[0]
            events.append(
                progress_pb2.ProgressEvent(
                    rule_chosen=progress_pb2.RuleChosen(
                        rule=rule, uses=uses[rule], uses_of_all_rules=sum(uses)
                    )
                )
            )
            state = replace(
                state,
                purpose=progress_pb2.STEP_PURPOSE_IMPROVE,
                rule=rule,
                visits=state.visits + 1,
            )
        else:
            state = replace(state, purpose=progress_pb2.STEP_PURPOSE_VALIDATE)
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_COUNT_USES,
            rules=state.table.rule_count,
            score=scoring.estimate(context.scores(request, outcome)[0]),
            events=events,
        )
        return state, report
