"""A round of the race between an action and the compass steps around it."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import evaluation_pb2, progress_pb2
from remy_services.designer import changes
from remy_services.designer.pattern.context import Context
from remy_services.designer.pattern.pattern_state import PatternState
from remy_services.designer.pattern.round import after_round
from remy_services.designer.pattern.visit import after_race, candidate_actions
from remy_services.designer.strategy import StepReport
from remy_simulator.messages import action_message


class PolishStep:
    """Every round has fresh specimens; the winner takes the place of the present action."""

    def request(self, context: Context, state: PatternState) -> evaluation_pb2.EvaluationRequest:
        rule = state.queue[0]
        return context.round_request(
            progress_pb2.STEP_PURPOSE_IMPROVE,
            state.epoch,
            state.races,
            table=state.current.table,
            candidates=[
                changes.one_rule(rule, action) for action in candidate_actions(context, state)
            ],
            race=state.race,
        )

    def receive(
        self,
        context: Context,
        state: PatternState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PatternState, StepReport]:
        state, report = after_round(
            context, state, progress_pb2.STEP_PURPOSE_IMPROVE, request, outcome
        )
        if not state.race.is_over(context.search):
            return state, report
        winner = state.race.winner()
        if winner is None:
            return after_race(context, state, None), report
        action = candidate_actions(context, state)[winner.candidate]
        rule = state.queue[0]
        improved = progress_pb2.RuleImproved(
            rule=rule,
            before=action_message(state.current.table.action(rule)),
            after=action_message(action),
            gain=winner.gain,
        )
        report = replace(report, events=[progress_pb2.ProgressEvent(rule_improved=improved)])
        return after_race(context, state, action), report
