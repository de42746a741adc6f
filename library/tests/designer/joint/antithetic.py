"""Makes requests and outcomes of antithetic pairs, and score differences of a given function."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

import numpy as np

from remy_farm.designer.actions import Coordinates
from remy_proto.v1 import evaluation_pb2
from remy_simulator import perturbation_noise


def pair_request(seed: int, scale: float, keys: Sequence[int]) -> evaluation_pb2.EvaluationRequest:
    """Returns a request for a pair with perturbations of `scale`, on specimens with these keys."""
    return evaluation_pb2.EvaluationRequest(
        candidates=[
            evaluation_pb2.Candidate(perturbation=evaluation_pb2.Perturbation(scale=sign * scale))
            for sign in (1, -1)
        ],
        seed=seed,
        specimen_columns=evaluation_pb2.SpecimenColumns(keys=array("Q", keys).tobytes()),
    )


def pair_outcome(
    up: Sequence[Sequence[int]], down: Sequence[Sequence[int]]
) -> evaluation_pb2.EvaluationOutcome:
    """Returns an outcome with these uses, by specimen and rule, of the two tables of a pair."""
    used = np.array(up, bool) | np.array(down, bool)
    return evaluation_pb2.EvaluationOutcome(
        used_rules=np.packbits(used, axis=1, bitorder="little").tobytes()
    )


def noise_of(seed: int, key: int, rules: int) -> Coordinates:
    """Returns the direction of the perturbation on one specimen."""
    return np.array(perturbation_noise(seed, key, rules)).reshape(rules, 3)


def half_differences(
    request: evaluation_pb2.EvaluationRequest,
    at: Coordinates,
    score: Callable[[Coordinates], float],
) -> list[float]:
    """Returns (score(x + sigma epsilon) - score(x - sigma epsilon)) / 2 for each specimen."""
    scale = request.candidates[0].perturbation.scale
    differences = []
    for key in memoryview(request.specimen_columns.keys).cast("Q"):
        move = scale * noise_of(request.seed, key, len(at))
        differences.append((score(at + move) - score(at - move)) / 2)
    return differences
