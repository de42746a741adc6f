"""The pattern search as a strategy: its steps, one after another."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, spec_pb2
from remy_services.designer import scoring
from remy_services.designer.action_space import ActionSpace
from remy_services.designer.errors import CheckpointError
from remy_services.designer.first_table import first_table
from remy_services.designer.pattern.context import Context
from remy_services.designer.pattern.count_uses_step import CountUsesStep
from remy_services.designer.pattern.pattern_state import PatternState
from remy_services.designer.pattern.pattern_table import PatternTable
from remy_services.designer.pattern.polish_step import PolishStep
from remy_services.designer.pattern.split_step import SplitStep
from remy_services.designer.pattern.step import Step
from remy_services.designer.pattern.try_splits_step import TrySplitsStep
from remy_services.designer.pattern.validate_step import ValidateStep, current_request
from remy_services.designer.pattern.visit import candidate_actions
from remy_services.designer.strategy import StepReport, Verdict
from remy_services.designer.streams import Streams
from remy_services.designer.validation import Validated, verdict
from remy_simulator import RuleTable

_STEPS: dict[progress_pb2.StepPurpose, Step] = {
    progress_pb2.STEP_PURPOSE_COUNT_USES: CountUsesStep(),
    progress_pb2.STEP_PURPOSE_IMPROVE: PolishStep(),
    progress_pb2.STEP_PURPOSE_VALIDATE: ValidateStep(),
    progress_pb2.STEP_PURPOSE_SPLIT: SplitStep(),
    progress_pb2.STEP_PURPOSE_TRY_SPLITS: TrySplitsStep(),
}


class PatternSearch:
    """Small tables by raced compass steps. See `Strategy` for what the members promise."""

    def __init__(
        self,
        spec: spec_pb2.DesignSpec,
        specimen_score: scoring.SpecimenScore,
        given: RuleTable | None = None,
        state: PatternState | None = None,
    ) -> None:
        search = spec.search.pattern
        space = ActionSpace(search)
        self._context = Context(spec, specimen_score, Streams(spec), space)
        first = given or first_table(spec, space, start=0)
        self._state = state or PatternState(
            purpose=progress_pb2.STEP_PURPOSE_VALIDATE,
            current=PatternTable(first, (search.first_step,) * first.rule_count),
        )

    @classmethod
    def restore(
        cls,
        spec: spec_pb2.DesignSpec,
        specimen_score: scoring.SpecimenScore,
        checkpoint: checkpoint_pb2.Checkpoint,
        given: RuleTable | None = None,
    ) -> PatternSearch:
        """The search that `save` wrote. Raises CheckpointError."""
        search = cls(spec, specimen_score, given, PatternState.from_message(checkpoint.pattern))
        state = search._state
        if state.purpose == progress_pb2.STEP_PURPOSE_IMPROVE:
            actions = len(candidate_actions(search._context, state))
            if any(runner.candidate >= actions for runner in state.race.runners):
                raise CheckpointError(
                    f"the checkpoint holds a race between more than the {actions} actions there are"
                )
        return search

    def save(self, checkpoint: checkpoint_pb2.Checkpoint) -> None:
        checkpoint.pattern.CopyFrom(self._state.to_message())

    @property
    def table(self) -> RuleTable:
        state = self._state
        return state.best.table if state.best else state.current.table

    @property
    def epoch(self) -> int:
        return self._state.epoch

    @property
    def finished(self) -> progress_pb2.StopReason | None:
        is_over = self._state.step >= self._context.search.steps
        return progress_pb2.STOP_REASON_SCHEDULE_COMPLETE if is_over else None

    @property
    def share_done(self) -> float | None:
        return min(self._state.step / self._context.search.steps, 1.0)

    def request(self) -> evaluation_pb2.EvaluationRequest:
        return _STEPS[self._state.purpose].request(self._context, self._state)

    def receive(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> StepReport:
        state = self._state
        step = _STEPS[state.purpose]
        state = replace(state, step=state.step + 1, effort=state.effort.with_outcome(outcome))
        self._state, report = step.receive(self._context, state, request, outcome)
        return report

    def closing_request(self) -> evaluation_pb2.EvaluationRequest | None:
        state = self._state
        if state.best is None or state.current.table == state.best.table:
            return None
        return current_request(self._context, state)

    def closing_verdict(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> Verdict:
        state = self._state
        (scores,) = self._context.scores(request, outcome)
        contender = Validated(state.current.table, tuple(scores))
        return verdict(state.best or contender, contender)
