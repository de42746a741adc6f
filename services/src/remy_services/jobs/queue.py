"""Whose turn it is: which of the jobs that could run do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Contender:
    """A job that runs or could."""

    job_id: str
    owner: str
    #: Higher runs first.
    priority: int
    #: When it was submitted, in nanoseconds since the epoch.
    create_time_ns: int
    is_running: bool


@dataclass(frozen=True)
class Limits:
    """How many jobs run at once."""

    running_jobs: int
    running_jobs_per_owner: int


def whose_turn(contenders: Iterable[Contender], limits: Limits) -> frozenset[str]:
    """The ids of those that should run now.

    By priority, higher first; among equals those that run already, then first come, first served.
    A job that only its owner's limit holds back lets others pass.
    """
    chosen: set[str] = set()
    by_owner: Counter[str] = Counter()
    for contender in sorted(contenders, key=_precedence):
        if len(chosen) == limits.running_jobs:
            break
        if by_owner[contender.owner] < limits.running_jobs_per_owner:
            chosen.add(contender.job_id)
            by_owner[contender.owner] += 1
    return frozenset(chosen)


def _precedence(contender: Contender) -> tuple[int, bool, int, str]:
    return (
        -contender.priority,
        not contender.is_running,
        contender.create_time_ns,
        contender.job_id,
    )
