"""What several workers' answers to one task come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from remy_farm.v1 import evaluation_pb2


@dataclass(frozen=True, slots=True)
class Vote:
    """One worker's answer."""

    #: Equal where answers are equal.
    key: bytes
    #: None if the task has no usable outcome, as this worker says.
    outcome: evaluation_pb2.EvaluationOutcome | None
    #: Why it has none.
    objection: str = ""
    #: How often the worker has said so.
    times: int = 1


def leading(votes: Mapping[str, Vote]) -> tuple[str, int]:
    """One of those whose answer most workers gave, and how many did. There is at least one vote."""
    if len(votes) == 1:
        return next(iter(votes)), 1
    key, agreeing = Counter(vote.key for vote in votes.values()).most_common(1)[0]
    return next(worker for worker, vote in votes.items() if vote.key == key), agreeing


def disputed(votes: Mapping[str, Vote]) -> bool:
    """Whether answers differ."""
    return len(votes) > 1 and len({vote.key for vote in votes.values()}) > 1


def missing(votes: Mapping[str, Vote], wanted: int) -> int:
    """How many more workers have to give one answer, the leading one, so that it holds.

    It takes `wanted` of them; two where there was any doubt. An evaluation is a pure function, so
    that whoever disagrees with two that agree is wrong.
    """
    if not votes:
        return wanted
    worker, agreeing = leading(votes)
    if disputed(votes) or votes[worker].outcome is None:
        wanted = max(wanted, 2)
    return max(wanted - agreeing, 0)
