"""Scores of outcomes (TCP ex Machina, Equation 1), in the same bits on every machine."""

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

from remy_proto.v1 import evaluation_pb2, spec_pb2
from remy_simulator import _native, messages

_Score = TypeVar("_Score")


def sender_scores(
    objective: spec_pb2.Objective,
    specimen: evaluation_pb2.Specimen,
    outcome: evaluation_pb2.SpecimenOutcome,
    duration_ms: float,
) -> list[float | None]:
    """Returns U_alpha(throughput) - delta * U_beta(delay) - loss_price * loss of each sender.

    Throughput is in Mbit/s, delay in ms, and loss is packets lost / packets sent. The objective of
    a sender's group, if it has one, takes precedence.

    A sender has no score (None) if it was never on, was on for less than objective.minimum_on_ms,
    or was first on too late to receive anything. If it could have received a packet but did not,
    its first packet counts as received at the end of the simulation.
    """
    return _scored(_native.objective_scores, objective, specimen, outcome, duration_ms)


def specimen_score(
    objective: spec_pb2.Objective,
    specimen: evaluation_pb2.Specimen,
    outcome: evaluation_pb2.SpecimenOutcome,
    duration_ms: float,
) -> float | None:
    """Returns the specimen's score: its scored senders combined by the weights of their groups.

    None if no sender is scored.
    """
    return _scored(_native.specimen_score, objective, specimen, outcome, duration_ms)


def _scored(
    score: Callable[..., _Score],
    objective: spec_pb2.Objective,
    specimen: evaluation_pb2.Specimen,
    outcome: evaluation_pb2.SpecimenOutcome,
    duration_ms: float,
) -> _Score:
    return score(
        objective=messages.native_objective(objective),
        link_rate_packets_per_ms=specimen.link_rate_packets_per_ms,
        rtt_ms=specimen.rtt_ms,
        packet_bytes=messages.packet_bytes(specimen.bottleneck),
        groups=[messages.native_senders(group) for group in specimen.senders],
        duration_ms=duration_ms,
        senders=messages.sender_results(outcome),
        tallies=messages.tallies(outcome),
    )


def normalized_sender_scores(
    minimum_on_ms: float,
    specimen: evaluation_pb2.Specimen,
    outcome: evaluation_pb2.SpecimenOutcome,
    duration_ms: float,
) -> list[float | None]:
    """Returns log2(equal-share throughput / link rate) - log2(delay / RTT) of each sender."""
    return _native.normalized_scores(
        minimum_on_ms=minimum_on_ms,
        link_rate_packets_per_ms=specimen.link_rate_packets_per_ms,
        rtt_ms=specimen.rtt_ms,
        duration_ms=duration_ms,
        senders=messages.sender_results(outcome),
        tallies=messages.tallies(outcome),
    )


def mean_of_scored(scores: Iterable[float | None]) -> float | None:
    """Returns the correctly rounded mean of the scores that are not None; None if all are."""
    scored = [score for score in scores if score is not None]
    return math.fsum(scored) / len(scored) if scored else None
