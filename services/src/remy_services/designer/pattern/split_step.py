"""Where rules might be divided: at the medians of the memory values that triggered them."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import evaluation_pb2, progress_pb2
from remy_services.designer import scoring
from remy_services.designer.pattern.context import Context
from remy_services.designer.pattern.pattern_state import PatternState
from remy_services.designer.pattern.race import Race
from remy_services.designer.pattern.trial_split import trial_splits
from remy_services.designer.splitting import median_thresholds
from remy_services.designer.strategy import StepReport
from remy_services.designer.uses import by_use, total_uses

# The most-used rules are divided on trial.
_RULES_ON_TRIAL = 3


class SplitStep:
    """Each of the most-used rules comes to trial on each signal."""

    def request(self, context: Context, state: PatternState) -> evaluation_pb2.EvaluationRequest:
        return context.recording_request(
            progress_pb2.STEP_PURPOSE_SPLIT,
            state.epoch,
            table=state.current.table,
            recording=evaluation_pb2.RECORDING_MEMORY,
        )

    def receive(
        self,
        context: Context,
        state: PatternState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PatternState, StepReport]:
        table = state.current.table
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_SPLIT,
            rules=table.rule_count,
            score=scoring.estimate(context.scores(request, outcome)[0]),
        )
        used = by_use(total_uses(outcome.outcomes, table.rule_count))
        splits = tuple(
            split
            for rule in used[:_RULES_ON_TRIAL]
            for split in trial_splits(
                context.space, table, rule, median_thresholds(table, rule, outcome.outcomes)
            )
        )
        if not splits:
            return replace(state, purpose=progress_pb2.STEP_PURPOSE_COUNT_USES), report
        state = replace(
            state,
            purpose=progress_pb2.STEP_PURPOSE_TRY_SPLITS,
            splits=splits,
            race=Race.between(len(splits)),
        )
        return state, report
