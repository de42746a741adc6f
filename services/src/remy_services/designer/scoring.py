"""Scoring: outcomes checked, candidates scored on specimens, means with standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from remy_farm.v1 import evaluation_pb2, progress_pb2, spec_pb2

# What a designer refuses. Every message is one sentence for the user.


class DesignerError(Exception):
    """A designer cannot do what it was asked for."""


class CheckpointError(DesignerError):
    """A checkpoint is damaged, or belongs to another specification or version."""


class OtherVersionError(CheckpointError):
    """A checkpoint was made by another version of the program or of the simulator."""


class OutcomeError(DesignerError):
    """An outcome does not answer the request."""


# Whether an outcome answers a request: the right number of results, of senders and of rules.


def check_outcome(
    request: evaluation_pb2.EvaluationRequest,
    outcome: evaluation_pb2.EvaluationOutcome,
) -> None:
    """Raises OutcomeError unless `outcome` has the shape that `request` asks for."""
    rules = sum(node.HasField("action") for node in request.tables[0].nodes)
    expected = len(request.candidates) * len(request.specimens)
    if len(outcome.outcomes) != expected:
        raise OutcomeError(
            f"the outcome holds {len(outcome.outcomes)} results; the request asks for "
            f"{len(request.candidates)} candidates on {len(request.specimens)} specimens"
        )
    senders = [sum(group.count for group in specimen.senders) for specimen in request.specimens]
    for number, result in enumerate(outcome.outcomes):
        _check_senders(senders[number % len(senders)], result, number)
        if request.recording and len(result.rule_uses) != rules:
            raise OutcomeError(
                f"result {number} counts the uses of {len(result.rule_uses)} rules; "
                f"the table has {rules}"
            )


def _check_senders(senders: int, result: evaluation_pb2.SpecimenOutcome, number: int) -> None:
    lengths = (
        len(result.packets_received),
        len(result.packets_sent),
        len(result.packets_lost),
        len(result.on_ms),
        len(result.share_ms),
        len(result.delay_sum_ms),
        len(result.first_on_ms),
    )
    if any(length != senders for length in lengths):
        raise OutcomeError(
            f"result {number} does not hold one entry for each of its specimen's {senders} senders"
        )


# Scores of candidates on specimens, and their means with standard errors.


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


# How often rules were looked up.


def total_uses(outcomes: Iterable[evaluation_pb2.SpecimenOutcome], rules: int) -> list[int]:
    """Look-ups of each of the table's `rules` on all specimens."""
    totals = [0] * rules
    for outcome in outcomes:
        for rule, uses in enumerate(outcome.rule_uses):
            totals[rule] += uses
    return totals


def by_use(uses: Sequence[int]) -> list[int]:
    """The rules that were used at all, most used first; of equals the lower number first."""
    used = [rule for rule, count in enumerate(uses) if count > 0]
    return sorted(used, key=lambda rule: (-uses[rule], rule))
