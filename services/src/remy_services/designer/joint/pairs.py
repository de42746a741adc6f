"""Antithetic pairs: all rules perturbed one way and the opposite way.

Both of a pair run on the same specimen under the same random streams, so that nearly all of what
differs between them is what the perturbation did (common random numbers).
"""

from __future__ import annotations

from collections.abc import Sequence

from remy_farm.v1 import evaluation_pb2, progress_pb2
from remy_services.designer.joint.context import Context
from remy_simulator import RuleTable

Scores = Sequence[float | None]


def pair_request(
    context: Context,
    purpose: progress_pb2.StepPurpose,
    *path: int,
    table: RuleTable,
    perturbation: float,
    specimens: int,
) -> evaluation_pb2.EvaluationRequest:
    """A pair on each of so many fresh specimens; `purpose` and `path` name all that is drawn.

    `perturbation` is the standard deviation by which the coordinates of all actions are moved.
    """
    seed = context.streams.simulation_seed(purpose, *path)
    return context.request(
        purpose,
        *path,
        table=table,
        candidates=[
            evaluation_pb2.Candidate(
                perturbation=evaluation_pb2.Perturbation(
                    seed=seed, scale=scale, bounds=context.space.bounds
                )
            )
            for scale in (perturbation, -perturbation)
        ],
        specimens=context.streams.specimens(purpose, *path, count=specimens, stratified=True),
        recording=evaluation_pb2.RECORDING_USES,
    )


def half_differences(up: Scores, down: Scores) -> list[float | None]:
    """Half the difference of each pair's scores; None where one could not be scored."""
    return [
        None if plus is None or minus is None else (plus - minus) / 2
        for plus, minus in zip(up, down, strict=True)
    ]


def middles(up: Scores, down: Scores) -> list[float]:
    """The mean of each pair's scores, where both could be scored."""
    return [
        (plus + minus) / 2
        for plus, minus in zip(up, down, strict=True)
        if plus is not None and minus is not None
    ]
