"""When each job was last heard of, as this coordinator has seen it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Checkpoint:
    """The last one of a job that is known to be durable."""

    #: Before the first: when this coordinator took the job.
    unix_seconds: float
    #: Size of the snapshot; 0 before the first.
    size_bytes: int = 0


class JobActivity:
    """Results and checkpoints by job id; may be told from any thread."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """`clock` tells Unix time in seconds."""
        self._clock = clock
        self._results: dict[str, float] = {}
        self._checkpoints: dict[str, Checkpoint] = {}

    def requested(self, job_id: str) -> None:
        """The job waits for results from now on, if it did not already."""
        self._results.setdefault(job_id, self._clock())

    def evaluated(self, job_id: str) -> None:
        """A result of the job has come."""
        self._results[job_id] = self._clock()

    def taken(self, job_id: str) -> None:
        """This coordinator is responsible for the job's checkpoints from now on."""
        self._checkpoints.setdefault(job_id, Checkpoint(self._clock()))

    def checkpointed(self, job_id: str, size_bytes: int) -> None:
        """A snapshot of the job is durable."""
        self._checkpoints[job_id] = Checkpoint(self._clock(), size_bytes)

    def last_result(self, job_id: str) -> float | None:
        """Unix time; None if the job has not asked for anything."""
        return self._results.get(job_id)

    def last_checkpoint(self, job_id: str) -> Checkpoint | None:
        """None if this coordinator has not taken the job."""
        return self._checkpoints.get(job_id)

    def keep_only(self, job_ids: Iterable[str]) -> None:
        """Forgets all other jobs."""
        kept = set(job_ids)
        for known in (self._results, self._checkpoints):
            for job_id in [each for each in tuple(known) if each not in kept]:
                known.pop(job_id, None)
