"""What a table scores on the yardstick's specimens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import remy_simulator
from remy_farm.v1 import evaluation_pb2, spec_pb2
from remy_services.report.measures import link_rate_mbps
from remy_services.report.trial import Estimate, Evaluate, estimate
from remy_services.yardstick.network import MINIMUM_ON_MS, SPECIMENS, held_out_request
from remy_simulator import RuleTable
from remy_simulator.objective import mean_of_scored, sender_scores

#: Numbers of senders that are told apart: first and last of each group.
GROUPS: Final = ((1, 1), (2, 4), (5, 9), (10, 16))

_NATURAL_LOGARITHM_OF_2: Final = remy_simulator.log(2.0)


@dataclass(frozen=True)
class YardstickScore:
    """Means with their standard errors; None where nothing could be scored."""

    #: Over specimens; a specimen's score is the mean over its senders.
    mean: Estimate | None
    #: Over the senders of all specimens.
    pooled: Estimate | None
    #: Over the specimens of each of GROUPS.
    groups: tuple[Estimate | None, ...]


def group_name(group: tuple[int, int]) -> str:
    """As in "2-4"."""
    first, last = group
    return str(first) if first == last else f"{first}-{last}"


def measure_table(
    table: RuleTable, evaluate: Evaluate, *, delta: float = 1.0, specimens: int = SPECIMENS
) -> YardstickScore:
    """Simulates a table on the held-out specimens, and scores it by `normalized_scores`."""
    request = held_out_request(table, specimens)
    outcome = evaluate(request)
    return summarize(
        [
            normalized_scores(delta, specimen, result, request.duration_ms)
            for specimen, result in zip(request.specimens, outcome.outcomes, strict=True)
        ]
    )


def normalized_scores(
    delta: float,
    specimen: evaluation_pb2.Specimen,
    outcome: evaluation_pb2.SpecimenOutcome,
    duration_ms: float,
) -> list[float | None]:
    """log2(equal-share throughput / link rate) - delta * log2(delay / RTT) of each sender.

    That is the objective with alpha = beta = 1 in units of 1 bit, zero for a sender that has its
    fair share of the link at no queueing. None for a sender that is left out.
    """
    objective = spec_pb2.Objective(
        alpha=1,
        beta=1,
        delta=delta,
        throughput=spec_pb2.THROUGHPUT_MEASURE_EQUAL_SHARE,
        minimum_on_ms=MINIMUM_ON_MS,
    )
    ideal = remy_simulator.log(link_rate_mbps(specimen)) - delta * remy_simulator.log(
        specimen.rtt_ms
    )
    return [
        None if score is None else (score - ideal) / _NATURAL_LOGARITHM_OF_2
        for score in sender_scores(objective, specimen, outcome, duration_ms)
    ]


def summarize(scores: Sequence[Sequence[float | None]]) -> YardstickScore:
    """The means of scores by specimen and sender; None is left out."""
    means = [mean_of_scored(senders) for senders in scores]
    return YardstickScore(
        mean=estimate(means),
        pooled=_pooled(scores),
        groups=tuple(
            estimate(
                [
                    mean
                    for mean, senders in zip(means, scores, strict=True)
                    if first <= len(senders) <= last
                ]
            )
            for first, last in GROUPS
        ),
    )


def _pooled(scores: Sequence[Sequence[float | None]]) -> Estimate | None:
    """The mean over senders. Those of one specimen share their fate: the error is that of a ratio
    of two sums over independent specimens."""
    scored = [[score for score in senders if score is not None] for senders in scores]
    counts = [len(senders) for senders in scored if senders]
    sums = [math.fsum(senders) for senders in scored if senders]
    senders, specimens = sum(counts), len(counts)
    if not senders:
        return None
    mean = math.fsum(sums) / senders
    if specimens < 2:
        return Estimate(mean, None, senders)
    squares = math.fsum(
        (total - mean * count) ** 2 for total, count in zip(sums, counts, strict=True)
    )
    error = math.sqrt(squares * specimens / (specimens - 1)) / senders
    return Estimate(mean, error, senders)
