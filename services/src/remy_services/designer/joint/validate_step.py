"""Whether the climb has got anywhere, on specimens that it never climbs on.

A step's own score is no answer: it belongs to perturbed tables on a handful of specimens. The
running average of the coordinates, rounded, is compared with the best table so far on the
validation specimens, which stay the same throughout a design and serve nothing else.
"""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import evaluation_pb2, progress_pb2
from remy_services.designer import scoring
from remy_services.designer.joint.context import Context
from remy_services.designer.joint.joint_state import JointState
from remy_services.designer.strategy import StepReport
from remy_services.designer.validation import Validated, compare, validation_request


class ValidateStep:
    """Ends an epoch; while starts are being tried, ends one of them."""

    def request(self, context: Context, state: JointState) -> evaluation_pb2.EvaluationRequest:
        return publication_request(context, state)

    def receive(
        self,
        context: Context,
        state: JointState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[JointState, StepReport]:
        (scores,) = context.scores(request, outcome)
        contender = Validated(state.climb.published(context.space), tuple(scores))
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_VALIDATE,
            rules=contender.table.rule_count,
            score=scoring.estimate(scores),
        )
        climbing = replace(state, purpose=progress_pb2.STEP_PURPOSE_CLIMB)
        if state.best is None:
            # The first single rule: what the design's gain is measured from.
            return replace(climbing, best=contender), report
        comparison = compare(state.best, contender)
        if comparison.accepted:
            climbing = replace(climbing, best=contender)
        record = progress_pb2.EpochRecord(
            epoch=state.epoch,
            rules=contender.table.rule_count,
            rules_changed=contender.table.rule_count,
            comparison=comparison,
            evaluations=state.effort.evaluations,
            simulated_packets=state.effort.simulated_packets,
        )
        if context.is_trying_starts(state.start):
            record.start = state.start
            climbing = next_start(context, climbing, comparison)
        report = replace(
            report,
            score=comparison.after if comparison.HasField("after") else None,
            gain=comparison.gain if comparison.HasField("gain") else None,
            epoch=record,
        )
        return climbing.next_epoch(), report


def publication_request(context: Context, state: JointState) -> evaluation_pb2.EvaluationRequest:
    """What would be published now, on the validation specimens."""
    return validation_request(
        context,
        state.climb.published(context.space),
        specimens=context.search.validation_specimens,
    )


def next_start(
    context: Context, state: JointState, comparison: progress_pb2.Comparison
) -> JointState:
    """Keeps the climb if it is the best start so far, and turns to the next; after the last one the
    best goes on."""
    score = comparison.after.mean if comparison.HasField("after") else float("-inf")
    if state.best_start is None or score > state.best_start_score:
        state = replace(state, best_start=state.climb, best_start_score=score)
    state = replace(state, start=state.start + 1)
    if context.is_trying_starts(state.start):
        return replace(state, climb=context.first_climb(state.start))
    climb = state.best_start or state.climb
    return replace(state, climb=climb, best_start=None, best_start_score=float("-inf"))
