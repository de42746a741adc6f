"""The joint search as a strategy: its steps, one after another."""

from __future__ import annotations

from dataclasses import replace

from remy_farm.v1 import checkpoint_pb2, evaluation_pb2, progress_pb2, spec_pb2
from remy_services.designer import scoring
from remy_services.designer.action_space import ActionSpace
from remy_services.designer.joint.climb_step import ClimbStep
from remy_services.designer.joint.context import Context
from remy_services.designer.joint.joint_state import JointState
from remy_services.designer.joint.schedule import Schedule
from remy_services.designer.joint.split_step import SplitStep
from remy_services.designer.joint.step import Step
from remy_services.designer.joint.try_splits_step import TrySplitsStep
from remy_services.designer.joint.validate_step import ValidateStep, publication_request
from remy_services.designer.strategy import StepReport, Verdict
from remy_services.designer.streams import Streams
from remy_services.designer.validation import Validated, verdict
from remy_simulator import RuleTable

_STEPS: dict[progress_pb2.StepPurpose, Step] = {
    progress_pb2.STEP_PURPOSE_CLIMB: ClimbStep(),
    progress_pb2.STEP_PURPOSE_SPLIT: SplitStep(),
    progress_pb2.STEP_PURPOSE_TRY_SPLITS: TrySplitsStep(),
    progress_pb2.STEP_PURPOSE_VALIDATE: ValidateStep(),
}


class JointSearch:
    """Evolution strategies on all rules at once. See `Strategy` for what the members promise."""

    def __init__(
        self,
        spec: spec_pb2.DesignSpec,
        specimen_score: scoring.SpecimenScore,
        given: RuleTable | None = None,
        state: JointState | None = None,
    ) -> None:
        search = spec.search
        self._context = Context(
            spec, specimen_score, Streams(spec), ActionSpace(search.joint), Schedule(search), given
        )
        self._state = state or JointState(
            purpose=progress_pb2.STEP_PURPOSE_VALIDATE, climb=self._context.first_climb(0)
        )

    @classmethod
    def restore(
        cls,
        spec: spec_pb2.DesignSpec,
        specimen_score: scoring.SpecimenScore,
        checkpoint: checkpoint_pb2.Checkpoint,
        given: RuleTable | None = None,
    ) -> JointSearch:
        """The search that `save` wrote. Raises CheckpointError."""
        return cls(spec, specimen_score, given, JointState.from_message(checkpoint.joint))

    def save(self, checkpoint: checkpoint_pb2.Checkpoint) -> None:
        checkpoint.joint.CopyFrom(self._state.to_message())

    @property
    def table(self) -> RuleTable:
        state = self._state
        return state.best.table if state.best else state.climb.published(self._context.space)

    @property
    def epoch(self) -> int:
        return self._state.epoch

    @property
    def finished(self) -> progress_pb2.StopReason | None:
        state = self._state
        is_over = (
            not self._context.is_trying_starts(state.start)
            and state.purpose == progress_pb2.STEP_PURPOSE_CLIMB
            and state.climb.steps >= self._context.schedule.steps
        )
        return progress_pb2.STOP_REASON_SCHEDULE_COMPLETE if is_over else None

    @property
    def share_done(self) -> float | None:
        state, schedule = self._state, self._context.schedule
        starts = self._context.starts
        one_start = schedule.work(min(self._context.search.start_steps, schedule.steps))
        before = min(state.start, starts - 1) * one_start
        whole = (starts - 1) * one_start + schedule.work(schedule.steps)
        return (before + schedule.work(state.climb.steps)) / whole

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
        state = self._state
        if state.best is None or self.finished is not None:
            return None
        published = state.climb.published(self._context.space)
        if published == state.best.table:
            return None
        return publication_request(self._context, state)

    def closing_verdict(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> Verdict:
        state = self._state
        (scores,) = self._context.scores(request, outcome)
        contender = Validated(state.climb.published(self._context.space), tuple(scores))
        return verdict(state.best or contender, contender)
