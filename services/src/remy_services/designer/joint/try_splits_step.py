"""The table grows where the two sides of a division want to differ."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import evaluation_pb2, progress_pb2
from remy_services.designer import scoring
from remy_services.designer.joint.climb_step import after_split
from remy_services.designer.joint.context import Context
from remy_services.designer.joint.disagreement import chosen_splits, disagreements
from remy_services.designer.joint.gradient import pair_samples, spread_after
from remy_services.designer.joint.joint_state import JointState
from remy_services.designer.joint.pairs import half_differences, middles, pair_request
from remy_services.designer.joint.trials import trial_table
from remy_services.designer.strategy import StepReport


class TrySplitsStep:
    """All divisions on trial are perturbed at once, and the slopes of their sides compared."""

    def request(self, context: Context, state: JointState) -> evaluation_pb2.EvaluationRequest:
        climb = state.climb
        return pair_request(
            context,
            progress_pb2.STEP_PURPOSE_TRY_SPLITS,
            state.start,
            climb.steps,
            table=trial_table(climb.table, state.trials),
            perturbation=context.schedule.settings(climb.steps).perturbation,
            specimens=context.schedule.trial_specimens,
        )

    def receive(
        self,
        context: Context,
        state: JointState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[JointState, StepReport]:
        up, down = context.scores(request, outcome)
        differences = half_differences(up, down)
        samples = pair_samples(request, outcome, differences, spread_after(differences))
        climb = state.climb
        splits = chosen_splits(
            state.trials,
            disagreements(state.trials, samples),
            # As many as the division of one rule on every signal.
            new_rules=(1 << len(climb.table.signals)) - 1,
            room=context.search.maximum_rules - climb.table.rule_count,
        )
        events = []
        # From the back, so that the numbers of the rules still to be divided stay what they are.
        for split in reversed(splits):
            climb = climb.split(split.rule, split.thresholds)
            events.append(split.event(climb.table.rule_count))
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_TRY_SPLITS,
            rules=state.climb.table.rule_count,
            score=scoring.estimate(middles(up, down)),
            events=events,
        )
        state = replace(state, climb=climb, trials=())
        return replace(state, purpose=after_split(context, state, climb.steps)), report
