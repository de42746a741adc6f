"""One step of the climb: antithetic perturbations of all rules on fresh specimens, and a step."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import evaluation_pb2, progress_pb2
from remy_services.designer import scoring
from remy_services.designer.joint.ascent import ascend
from remy_services.designer.joint.context import Context
from remy_services.designer.joint.gradient import gradient_samples
from remy_services.designer.joint.joint_state import JointState
from remy_services.designer.joint.pairs import half_differences, middles, pair_request
from remy_services.designer.strategy import StepReport


class ClimbStep:
    """One pair on each specimen informs the slopes of all rules."""

    def request(self, context: Context, state: JointState) -> evaluation_pb2.EvaluationRequest:
        climb = state.climb
        settings = context.schedule.settings(climb.steps)
        return pair_request(
            context,
            progress_pb2.STEP_PURPOSE_CLIMB,
            state.start,
            climb.steps,
            table=climb.table,
            perturbation=settings.perturbation,
            specimens=settings.specimens,
        )

    def receive(
        self,
        context: Context,
        state: JointState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[JointState, StepReport]:
        climb = state.climb
        up, down = context.scores(request, outcome)
        settings = context.schedule.settings(climb.steps)
        samples = gradient_samples(
            request,
            outcome,
            half_differences(up, down),
            climb.regions,
            climb.spread,
            settings.memories,
        )
        climb = ascend(climb, samples, settings, context.space)
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_CLIMB,
            rules=climb.table.rule_count,
            score=scoring.estimate(middles(up, down)),
        )
        return replace(state, climb=climb, purpose=after_step(context, state, climb.steps)), report


def after_step(context: Context, state: JointState, steps: int) -> progress_pb2.StepPurpose:
    """What comes once `steps` steps have been made: a split, a validation, or the next step."""
    climb = state.climb
    if climb.last_split != steps and context.schedule.split_is_due(steps, climb.table.rule_count):
        return progress_pb2.STEP_PURPOSE_SPLIT
    return after_split(context, state, steps)


def after_split(context: Context, state: JointState, steps: int) -> progress_pb2.StepPurpose:
    """The same where no split is due (any more)."""
    if context.is_trying_starts(state.start):
        validate = steps >= min(context.search.start_steps, context.schedule.steps)
    else:
        validate = context.schedule.epoch_is_due(steps)
    return progress_pb2.STEP_PURPOSE_VALIDATE if validate else progress_pb2.STEP_PURPOSE_CLIMB
