"""Requests in parts: which simulations make up a task, and their outcomes in order again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from remy_farm.v1 import evaluation_pb2


@dataclass(frozen=True)
class Task:
    """Some of a request's candidates on some of its specimens."""

    candidates: range
    specimens: range

    @property
    def simulations(self) -> int:
        """Simulations of one specimen under one candidate."""
        return len(self.candidates) * len(self.specimens)

    def request(self, whole: evaluation_pb2.EvaluationRequest) -> evaluation_pb2.EvaluationRequest:
        """The request for this part of the whole."""
        part = self.request_without_tables(whole)
        part.tables.extend(whole.tables)
        return part

    def request_without_tables(
        self, whole: evaluation_pb2.EvaluationRequest
    ) -> evaluation_pb2.EvaluationRequest:
        """The same for those who have the tables already."""
        candidates, specimens = self.candidates, self.specimens
        return evaluation_pb2.EvaluationRequest(
            candidates=whole.candidates[candidates.start : candidates.stop],
            specimens=whole.specimens[specimens.start : specimens.stop],
            duration_ms=whole.duration_ms,
            seed=whole.seed,
            recording=whole.recording,
        )


def partition(whole: evaluation_pb2.EvaluationRequest, simulations_per_task: int) -> list[Task]:
    """Tasks of at most `simulations_per_task` (>= 1) simulations that cover the request once.

    Whole candidates where they fit, since their specimens are the same; else parts of one.
    """
    candidates, specimens = len(whole.candidates), len(whole.specimens)
    if simulations_per_task >= specimens:
        together = simulations_per_task // max(specimens, 1)
        return [
            Task(range(first, min(first + together, candidates)), range(specimens))
            for first in range(0, candidates, together)
        ]
    return [
        Task(
            range(candidate, candidate + 1),
            range(first, min(first + simulations_per_task, specimens)),
        )
        for candidate in range(candidates)
        for first in range(0, specimens, simulations_per_task)
    ]


def assemble(
    whole: evaluation_pb2.EvaluationRequest,
    parts: Iterable[tuple[Task, evaluation_pb2.EvaluationOutcome]],
) -> evaluation_pb2.EvaluationOutcome:
    """The whole request's outcome from those of tasks that cover it once, in any order."""
    row = len(whole.specimens)
    missing = len(whole.candidates) * row
    placed = [evaluation_pb2.SpecimenOutcome()] * missing
    for task, part in parts:
        missing -= task.simulations
        results = part.outcomes[:]
        if len(results) != task.simulations:
            raise ValueError(
                f"a part has {len(results)} results for {task.simulations} simulations"
            )
        width = len(task.specimens)
        for number, candidate in enumerate(task.candidates):
            first = candidate * row + task.specimens.start
            placed[first : first + width] = results[number * width : (number + 1) * width]
    if missing:
        raise ValueError(f"the parts leave {missing} of the request's simulations out")
    return evaluation_pb2.EvaluationOutcome(outcomes=placed)
