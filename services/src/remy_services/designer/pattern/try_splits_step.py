"""A round of the race between divisions; the one that gains most is made."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import evaluation_pb2, progress_pb2
from remy_services.designer.pattern.context import Context
from remy_services.designer.pattern.pattern_state import PatternState
from remy_services.designer.pattern.race import Race
from remy_services.designer.pattern.round import after_round
from remy_services.designer.pattern.trial_split import on_trial
from remy_services.designer.strategy import StepReport


class TrySplitsStep:
    """The table grows by one rule, or not at all where no division gains more than luck would."""

    def request(self, context: Context, state: PatternState) -> evaluation_pb2.EvaluationRequest:
        table, candidates = on_trial(state.current.table, state.splits)
        return context.round_request(
            progress_pb2.STEP_PURPOSE_TRY_SPLITS,
            state.epoch,
            table=table,
            candidates=candidates,
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
            context, state, progress_pb2.STEP_PURPOSE_TRY_SPLITS, request, outcome
        )
        if not state.race.is_over(context.search):
            return state, report
        winner = state.race.leader()
        if winner is not None and winner.has_gained(0.0):
            trial = state.splits[winner.candidate]
            current = trial.applied(state.current, context.search.first_step)
            state = replace(state, current=current, epochs_since_split=0)
            report = replace(report, events=[trial.split.event(current.table.rule_count)])
        state = replace(state, purpose=progress_pb2.STEP_PURPOSE_COUNT_USES, splits=(), race=Race())
        return state, report
