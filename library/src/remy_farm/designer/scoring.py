"""Scores candidates on specimens, estimates means with standard errors, and compares tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from remy_proto.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_simulator import columns
from remy_simulator.objective import specimen_score

# Errors of a designer: every message is one sentence for the user


class DesignerError(Exception):
    """A designer cannot do what it was asked to do."""


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
    """Returns the score of every candidate (first index) on every specimen; None without a score.

    Scores are taken from the outcome if the request asked for them. Otherwise they are computed
    from the senders' results with `objective`, which gives the same bits. Raises OutcomeError for a
    score that is not finite.
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
    """Returns the scores of every candidate on the specimens on which all candidates have one.

    A specimen on which one candidate has no score is left out for all, so that candidates are
    compared on the same networks.
    """
    by_specimen = (
        [score for score in column if score is not None] for column in zip(*rows, strict=True)
    )
    complete = [column for column in by_specimen if len(column) == len(rows)]
    return [[column[candidate] for column in complete] for candidate in range(len(rows))]


def cvar_terms(scores: Sequence[float | None], share: float) -> list[float | None]:
    """Returns terms, one per score, whose mean is the mean over the worst `share` of the scores.

    That mean is the conditional value at risk (CVaR). Written as a mean of terms (Rockafellar and
    Uryasev 2000), it has the standard error and the paired differences of a mean.
    """
    if share >= 1:
        return list(scores)
    threshold = worst_share_threshold(scores, share)
    return [
        None if score is None else threshold + min(score - threshold, 0.0) / share
        for score in scores
    ]


def worst_share_threshold(scores: Iterable[float | None], share: float) -> float:
    """Returns the highest score within the worst `share` of the scores; 0 if there are none."""
    ascending = sorted(score for score in scores if score is not None)
    return ascending[max(math.ceil(share * len(ascending)), 1) - 1] if ascending else 0.0


def mean(values: Sequence[float]) -> float:
    """Returns the mean of at least one value, summed without rounding errors."""
    return math.fsum(values) / len(values)


def estimate(scores: Sequence[float | None]) -> progress_pb2.Estimate | None:
    """Returns the mean of the scores that are not None, with its standard error.

    Returns None if all are None.
    """
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
    """Returns the paired gain: the mean over specimens of `after` minus `before`."""
    return estimate([new - old for old, new in zip(before, after, strict=True)])


def compare(before: Sequence[float], after: Sequence[float]) -> progress_pb2.Comparison:
    """Compares a new table with the old one on the same specimens; accepts a positive mean gain."""
    gain = estimate_gain(before, after)
    return progress_pb2.Comparison(
        before=estimate(before),
        after=estimate(after),
        gain=gain,
        accepted=gain is not None and gain.mean > 0,
    )


def rules_by_use(uses: Sequence[int]) -> list[int]:
    """Returns the rules that were used, most-used first, then by number."""
    used = [rule for rule, count in enumerate(uses) if count > 0]
    return sorted(used, key=lambda rule: (-uses[rule], rule))
