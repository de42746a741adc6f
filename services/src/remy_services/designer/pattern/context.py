"""What the steps of the pattern search have in common."""

from __future__ import annotations

from remy_farm.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_services.designer import changes
from remy_services.designer.pattern.race import Race
from remy_services.designer.strategy_context import StrategyContext
from remy_simulator import RuleTable


class Context(StrategyContext):
    """What a design fixes for all of its steps."""

    @property
    def search(self) -> spec_pb2.PatternSearch:
        return self.spec.search.pattern

    def round_request(
        self,
        purpose: progress_pb2.StepPurpose,
        *path: int,
        table: RuleTable,
        candidates: list[evaluation_pb2.Candidate],
        race: Race,
    ) -> evaluation_pb2.EvaluationRequest:
        """The next round of the race that `purpose` and `path` name: the unchanged table and those
        of its `candidates` that still run, on fresh specimens."""
        path = (*path, race.specimens)
        return self.request(
            purpose,
            *path,
            table=table,
            candidates=[
                changes.unchanged(),
                *(candidates[runner.candidate] for runner in race.runners),
            ],
            specimens=self.streams.specimens(
                purpose, *path, count=race.next_specimens(self.search), stratified=True
            ),
        )
