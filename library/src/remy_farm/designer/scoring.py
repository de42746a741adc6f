"""Scoring: candidates scored on specimens, means with standard errors, rules by their use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from remy_proto.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_simulator import columns
from remy_simulator.objective import specimen_score

# What a designer refuses: every message is one sentence for the user


class DesignerError(Exception):
    """A designer cannot do what it was asked for."""


class CheckpointError(DesignerError):
    """A checkpoint is damaged, or belongs to another specification or version."""


class OtherVersionError(CheckpointError):
    """A checkpoint was made by another version of the program or of the simulator."""


class OutcomeError(DesignerError):
    """An outcome does not answer the request."""


def scores(
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
    objective: spec_pb2.Objective,
) -> list[list[float | None]]:
    """The score of every candidate (first index) on every specimen; None where it has none.

    They are the outcome's where the request asked for scores, and otherwise those that `objective`
    gives to senders' results, in the same bits. Raises OutcomeError unless they are finite.
    """
    if request.HasField("objective"):
        return columns.score_rows(request, outcome)
    specimens = columns.unpack_specimens(request.specimen_columns)
    results = iter(columns.specimen_outcomes(request, outcome))
    rows: list[list[float | None]] = []
    for candidate in range(len(request.candidates)):
        row = []
        for number, specimen in enumerate(specimens):
            score = specimen_score(objective, specimen, next(results), request.duration_ms)
            if score is not None and not math.isfinite(score):
                raise OutcomeError(
                    f"candidate {candidate} scored {score} on specimen {number}; scores are finite"
                )
            row.append(score)
        rows.append(row)
    return rows


def paired(rows: Sequence[Sequence[float | None]]) -> list[list[float]]:
    """The scores of every candidate on the specimens that all of them have one on.

    A specimen without a score under one candidate is left out for all of them, so that they are
    always compared on the same networks.
    """
    by_specimen = (
        [score for score in column if score is not None] for column in zip(*rows, strict=True)
    )
    complete = [column for column in by_specimen if len(column) == len(rows)]
    return [[column[candidate] for column in complete] for candidate in range(len(rows))]


def shares_of_worst(
    scores: Sequence[float | None], share: float, floor: float | None = None
) -> list[float | None]:
    """What each score adds to the mean over the worst share of all: numbers whose mean it is.

    That is the conditional value at risk in the form of Rockafellar and Uryasev (2000), so that its
    error and paired differences are those of a mean. `floor` is the best of the worst scores, where
    it is that of several rows of scores.
    """
    if share >= 1:
        return list(scores)
    best = best_of_worst(scores, share) if floor is None else floor
    return [None if score is None else best + min(score - best, 0.0) / share for score in scores]


def best_of_worst(scores: Iterable[float | None], share: float) -> float:
    """The highest of the worst share of the scores; 0 of none."""
    ascending = sorted(score for score in scores if score is not None)
    return ascending[max(math.ceil(share * len(ascending)), 1) - 1] if ascending else 0.0


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
        deviations = np.array(values) - centre
        squares = math.fsum((deviations * deviations).tolist())
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


def by_use(uses: Sequence[int]) -> list[int]:
    """The rules that were used at all, most used first; of equals the lower number first."""
    used = [rule for rule, count in enumerate(uses) if count > 0]
    return sorted(used, key=lambda rule: (-uses[rule], rule))
