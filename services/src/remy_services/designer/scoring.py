"""Scores of candidates on specimens, and their means with standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from remy_farm.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_services.designer.errors import OutcomeError

#: (objective, specimen, outcome, duration in ms) -> the specimen's score, in the objective's units;
#: None if no sender could be scored. `remy_simulator.objective.specimen_score` is the real one.
SpecimenScore = Callable[
    [spec_pb2.Objective, evaluation_pb2.Specimen, evaluation_pb2.SpecimenOutcome, float],
    float | None,
]


def scores(
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
    objective: spec_pb2.Objective,
    specimen_score: SpecimenScore,
) -> list[list[float | None]]:
    """The score of every candidate (first index) on every specimen; None where it has none."""
    outcomes = iter(outcome.outcomes)
    rows: list[list[float | None]] = []
    for candidate in range(len(request.candidates)):
        row = []
        for number, specimen in enumerate(request.specimens):
            score = specimen_score(objective, specimen, next(outcomes), request.duration_ms)
            if score is not None and not math.isfinite(score):
                raise OutcomeError(
                    f"candidate {candidate} scored {score} on specimen {number}; scores are finite"
                )
            row.append(score)
        rows.append(row)
    return rows


def paired_scores(
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
    objective: spec_pb2.Objective,
    specimen_score: SpecimenScore,
) -> list[list[float]]:
    """The score of every candidate (first index) on every specimen that all of them have one on.

    A specimen without a score under one candidate is left out for all of them, so that they are
    always compared on the same networks.
    """
    rows = scores(request, outcome, objective, specimen_score)
    columns = [
        [score for score in column if score is not None] for column in zip(*rows, strict=True)
    ]
    complete = [column for column in columns if len(column) == len(rows)]
    return [[column[candidate] for column in complete] for candidate in range(len(rows))]


def mean(values: Sequence[float]) -> float:
    """The mean of at least one value, summed without rounding errors."""
    return math.fsum(values) / len(values)


def estimate(scores: Sequence[float | None]) -> progress_pb2.Estimate | None:
    """The mean of those that there are, with its standard error; None if there are none."""
    values = [score for score in scores if score is not None]
    if not values:
        return None
    centre = mean(values)
    result = progress_pb2.Estimate(mean=centre, specimens=len(values))
    if len(values) > 1:
        squares = math.fsum((value - centre) * (value - centre) for value in values)
        result.standard_error = math.sqrt(squares / (len(values) - 1) / len(values))
    return result


def estimate_gain(before: Sequence[float], after: Sequence[float]) -> progress_pb2.Estimate | None:
    """The paired gain: mean of the differences, after minus before, by specimen."""
    return estimate([new - old for old, new in zip(before, after, strict=True)])


def compare(before: Sequence[float], after: Sequence[float]) -> progress_pb2.Comparison:
    """A new table against the old one, on the same specimens; accepted if its gain is positive."""
    gain = estimate_gain(before, after)
    return progress_pb2.Comparison(
        before=estimate(before),
        after=estimate(after),
        gain=gain,
        accepted=gain is not None and gain.mean > 0,
    )


def simulated_packets(outcome: evaluation_pb2.EvaluationOutcome) -> int:
    """Packets sent in all simulations of an outcome."""
    return sum(sum(specimen.packets_sent) for specimen in outcome.outcomes)
