"""What the steps of every search that moves through the space of actions have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remy_farm.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_services.designer import changes, scoring
from remy_services.designer.action_space import ActionSpace
from remy_services.designer.streams import Streams
from remy_simulator import RuleTable
from remy_simulator.messages import from_native


@dataclass(frozen=True)
class StrategyContext:
    """What a design fixes for all of its steps."""

    spec: spec_pb2.DesignSpec
    specimen_score: scoring.SpecimenScore
    streams: Streams
    space: ActionSpace

    def request(
        self,
        purpose: progress_pb2.StepPurpose,
        *path: int,
        table: RuleTable,
        candidates: Sequence[evaluation_pb2.Candidate],
        specimens: Sequence[evaluation_pb2.Specimen],
        recording: evaluation_pb2.Recording = evaluation_pb2.RECORDING_UNSPECIFIED,
    ) -> evaluation_pb2.EvaluationRequest:
        """A request whose random draws are named by `purpose` and `path`."""
        return evaluation_pb2.EvaluationRequest(
            tables=[from_native(table)],
            candidates=candidates,
            specimens=specimens,
            duration_ms=self.spec.search.simulated_seconds * 1000,
            seed=self.streams.simulation_seed(purpose, *path),
            recording=recording,
        )

    def recording_request(
        self,
        purpose: progress_pb2.StepPurpose,
        *path: int,
        table: RuleTable,
        recording: evaluation_pb2.Recording,
    ) -> evaluation_pb2.EvaluationRequest:
        """A request for what a table's rules see, on as many fresh specimens as a step has."""
        return self.request(
            purpose,
            *path,
            table=table,
            candidates=[changes.unchanged()],
            specimens=self.streams.specimens(
                purpose, *path, count=self.spec.search.specimens, stratified=True
            ),
            recording=recording,
        )

    def scores(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> list[list[float | None]]:
        """Scores by candidate and specimen; None where no sender could be scored."""
        return scoring.scores(request, outcome, self.spec.objective, self.specimen_score)
