"""The paper's search (section 4.3) as a strategy: its steps, one after another."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, spec_pb2
from remy_services.designer import scoring
from remy_services.designer.paper.action_grid import action_grid
from remy_services.designer.paper.choose_rule import ChooseRule
from remy_services.designer.paper.context import Context
from remy_services.designer.paper.end_epoch import EndEpoch, comparison_request, comparison_verdict
from remy_services.designer.paper.improve_action import ImproveAction
from remy_services.designer.paper.paper_state import PaperState
from remy_services.designer.paper.split_rule import SplitRule
from remy_services.designer.paper.step import Step
from remy_services.designer.strategy import StepReport, Verdict
from remy_services.designer.streams import Streams
from remy_simulator import RuleTable
from remy_simulator.messages import axis_of

_STEPS: dict[progress_pb2.StepPurpose, Step] = {
    progress_pb2.STEP_PURPOSE_COUNT_USES: ChooseRule(),
    progress_pb2.STEP_PURPOSE_IMPROVE: ImproveAction(),
    progress_pb2.STEP_PURPOSE_VALIDATE: EndEpoch(),
    progress_pb2.STEP_PURPOSE_SPLIT: SplitRule(),
}


class PaperSearch:
    """A greedy search, rule by rule. See `Strategy` for what the members promise."""

    def __init__(
        self,
        spec: spec_pb2.DesignSpec,
        specimen_score: scoring.SpecimenScore,
        given: RuleTable | None = None,
        state: PaperState | None = None,
    ) -> None:
        grid = action_grid(spec.search.paper)
        self._context = Context(spec, specimen_score, Streams(spec), grid)
        # "Remy initializes a RemyCC with only a single rule."
        axes = [axis_of(signal) for signal in spec.signals]
        first = given or RuleTable(axes, [([], grid.initial)])
        self._state = state or PaperState.first(first)

    @classmethod
    def restore(
        cls,
        spec: spec_pb2.DesignSpec,
        specimen_score: scoring.SpecimenScore,
        checkpoint: checkpoint_pb2.Checkpoint,
        given: RuleTable | None = None,
    ) -> PaperSearch:
        """The search that `save` wrote. Raises CheckpointError."""
        return cls(spec, specimen_score, given, PaperState.from_message(checkpoint.paper))

    def save(self, checkpoint: checkpoint_pb2.Checkpoint) -> None:
        checkpoint.paper.CopyFrom(self._state.to_message())

    @property
    def table(self) -> RuleTable:
        return self._state.epoch_table

    @property
    def epoch(self) -> int:
        return self._state.epoch

    @property
    def finished(self) -> progress_pb2.StopReason | None:
        # Looked at where a split is due, so that the last rules are honed as long as all others.
        state, stop = self._state, self._context.spec.stop
        split_is_due = state.purpose == progress_pb2.STEP_PURPOSE_SPLIT
        if split_is_due and stop.HasField("rules") and state.table.rule_count >= stop.rules:
            return progress_pb2.STOP_REASON_RULES
        return None

    @property
    def share_done(self) -> float | None:
        return None

    def request(self) -> evaluation_pb2.EvaluationRequest:
        return _STEPS[self._state.purpose].request(self._context, self._state)

    def receive(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> StepReport:
        state = self._state
        step = _STEPS[state.purpose]
        state = replace(state, effort=state.effort.with_outcome(outcome))
        self._state, report = step.receive(self._context, state, request, outcome)
        return report

    def closing_request(self) -> evaluation_pb2.EvaluationRequest | None:
        request = comparison_request(self._context, self._state, progress_pb2.STEP_PURPOSE_CLOSE)
        return request if len(request.candidates) > 1 else None

    def closing_verdict(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> Verdict:
        return comparison_verdict(self._context, self._state, request, outcome)
