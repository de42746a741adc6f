"""The table grows where it is used (section 4.3, step 5)."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_services.designer import scoring
from remy_services.designer.joint.climb_step import after_split
from remy_services.designer.joint.context import Context
from remy_services.designer.joint.joint_state import JointState
from remy_services.designer.joint.trials import most_used_on_trial
from remy_services.designer.splitting import split_most_used
from remy_services.designer.strategy import StepReport


class SplitStep:
    """The most-used rule is divided at the medians of the memory values that triggered it; or, if
    disagreement is to decide, several rules come to trial there."""

    def request(self, context: Context, state: JointState) -> evaluation_pb2.EvaluationRequest:
        return context.recording_request(
            progress_pb2.STEP_PURPOSE_SPLIT,
            state.start,
            state.climb.steps,
            table=state.climb.table,
            recording=evaluation_pb2.RECORDING_MEMORY,
        )

    def receive(
        self,
        context: Context,
        state: JointState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[JointState, StepReport]:
        climb = replace(state.climb, last_split=state.climb.steps)
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_SPLIT,
            rules=climb.table.rule_count,
            score=scoring.estimate(context.scores(request, outcome)[0]),
        )
        if context.search.splits == spec_pb2.JOINT_SPLITS_DISAGREEMENT:
            trials = most_used_on_trial(climb.table, outcome.outcomes)
            if trials:
                purpose = progress_pb2.STEP_PURPOSE_TRY_SPLITS
                return replace(state, climb=climb, trials=trials, purpose=purpose), report
        elif split := split_most_used(climb.table, outcome.outcomes):
            climb = climb.split(split.rule, split.thresholds)
            report = replace(report, events=[split.event(climb.table.rule_count)])
        state = replace(state, climb=climb)
        return replace(state, purpose=after_split(context, state, climb.steps)), report
