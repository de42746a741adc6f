"""The end of an epoch: whether its table replaces the best one, and whether a rule is divided."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import evaluation_pb2, progress_pb2
from remy_services.designer import scoring
from remy_services.designer.pattern.context import Context
from remy_services.designer.pattern.pattern_state import PatternState
from remy_services.designer.pattern.pattern_table import PatternTable
from remy_services.designer.strategy import StepReport
from remy_services.designer.validation import Validated, compare, validation_request


class ValidateStep:
    """A table that does not beat the best one is rolled back to it, divisions and all."""

    def request(self, context: Context, state: PatternState) -> evaluation_pb2.EvaluationRequest:
        return current_request(context, state)

    def receive(
        self,
        context: Context,
        state: PatternState,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> tuple[PatternState, StepReport]:
        (scores,) = context.scores(request, outcome)
        contender = Validated(state.current.table, tuple(scores))
        report = StepReport(
            purpose=progress_pb2.STEP_PURPOSE_VALIDATE,
            rules=contender.table.rule_count,
            score=scoring.estimate(scores),
        )
        if state.best is None:
            # The first single rule: what the design's gain is measured from.
            state = _with_best(state, contender)
            return replace(state, purpose=progress_pb2.STEP_PURPOSE_COUNT_USES), report
        comparison = compare(state.best, contender)
        record = progress_pb2.EpochRecord(
            epoch=state.epoch,
            rules=contender.table.rule_count,
            rules_changed=len(state.changed_rules),
            comparison=comparison,
            evaluations=state.effort.evaluations,
            simulated_packets=state.effort.simulated_packets,
        )
        best = PatternTable(state.best.table, state.best_steps)
        if comparison.accepted:
            state = _with_best(state, contender)
        else:
            state = replace(state, current=best)
        state = replace(state, epochs_since_split=state.epochs_since_split + 1)
        grows = _grows(context, state, comparison)
        purpose = progress_pb2.STEP_PURPOSE_SPLIT if grows else progress_pb2.STEP_PURPOSE_COUNT_USES
        report = replace(
            report,
            gain=comparison.gain if comparison.HasField("gain") else None,
            epoch=record,
        )
        return state.next_epoch(purpose), report


def current_request(context: Context, state: PatternState) -> evaluation_pb2.EvaluationRequest:
    """The table being polished, on the validation specimens."""
    specimens = context.search.validation_specimens
    return validation_request(context, state.current.table, specimens)


def _with_best(state: PatternState, best: Validated) -> PatternState:
    return replace(state, best=best, best_steps=state.current.steps)


def _grows(context: Context, state: PatternState, comparison: progress_pb2.Comparison) -> bool:
    search = context.search
    if state.current.table.rule_count >= search.maximum_rules:
        return False
    is_slow: bool = comparison.gain.mean < search.growth_threshold
    return is_slow or state.epochs_since_split >= search.epochs_per_split
