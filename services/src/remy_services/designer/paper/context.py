"""What the steps of the paper's search have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from remy_farm.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_services.designer import scoring
from remy_services.designer.paper.action_grid import ActionGrid
from remy_services.designer.streams import Streams
from remy_simulator import RuleTable
from remy_simulator.messages import from_native


@dataclass(frozen=True)
class Context:
    """What a design fixes for all of its steps."""

    spec: spec_pb2.DesignSpec
    specimen_score: scoring.SpecimenScore
    streams: Streams
    grid: ActionGrid

    def request(
        self,
        purpose: progress_pb2.StepPurpose,
        *path: int,
        table: RuleTable,
        candidates: Sequence[evaluation_pb2.Candidate],
        specimens: int,
        recording: evaluation_pb2.Recording = evaluation_pb2.RECORDING_UNSPECIFIED,
    ) -> evaluation_pb2.EvaluationRequest:
        """A request whose networks and random draws are named by `purpose` and `path`."""
        return evaluation_pb2.EvaluationRequest(
            tables=[from_native(table)],
            candidates=candidates,
            specimens=self.streams.specimens(purpose, *path, count=specimens),
            duration_ms=self.spec.search.simulated_seconds * 1000,
            seed=self.streams.simulation_seed(purpose, *path),
            recording=recording,
        )

    def scores(
        self,
        request: evaluation_pb2.EvaluationRequest,
        outcome: evaluation_pb2.EvaluationOutcome,
    ) -> list[list[float]]:
        """Paired scores by candidate and specimen."""
        return scoring.paired_scores(request, outcome, self.spec.objective, self.specimen_score)
