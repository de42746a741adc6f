"""Requests of one antithetic pair, and differences that any function of the coordinates makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from remy_farm.v1 import evaluation_pb2
from remy_services.designer.actions import Coordinates
from remy_simulator import perturbation_noise


def pair_request(seed: int, scale: float, keys: Sequence[int]) -> evaluation_pb2.EvaluationRequest:
    """Both perturbations of a size, on specimens with these keys."""
    return evaluation_pb2.EvaluationRequest(
        candidates=[
            evaluation_pb2.Candidate(
                perturbation=evaluation_pb2.Perturbation(seed=seed, scale=sign * scale)
            )
            for sign in (1, -1)
        ],
        specimens=[evaluation_pb2.Specimen(key=key) for key in keys],
    )


def pair_outcome(
    up: Sequence[Sequence[int]], down: Sequence[Sequence[int]]
) -> evaluation_pb2.EvaluationOutcome:
    """Outcomes with these uses, by specimen and rule, under either perturbation."""
    return evaluation_pb2.EvaluationOutcome(
        outcomes=[evaluation_pb2.SpecimenOutcome(rule_uses=uses) for uses in (*up, *down)]
    )


def noise_of(seed: int, key: int, rules: int) -> Coordinates:
    """The direction of a perturbation on one specimen."""
    return np.array(perturbation_noise(seed, key, rules)).reshape(rules, 3)


def half_differences(
    request: evaluation_pb2.EvaluationRequest,
    at: Coordinates,
    score: Callable[[Coordinates], float],
) -> list[float]:
    """(score(x + sigma epsilon) - score(x - sigma epsilon)) / 2 on each of the specimens."""
    perturbation = request.candidates[0].perturbation
    differences = []
    for specimen in request.specimens:
        move = perturbation.scale * noise_of(perturbation.seed, specimen.key, len(at))
        differences.append((score(at + move) - score(at - move)) / 2)
    return differences
