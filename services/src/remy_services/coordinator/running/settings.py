"""How jobs are run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RunSettings:
    """What all jobs of a coordinator have in common."""

    #: A job's state is committed at most once in this time, and whenever the job's state changes.
    checkpoint_seconds: float = 1.0
    #: Snapshots that are kept of each job.
    snapshots_kept: int = 2
    #: Packets that one job may simulate; None: any number.
    maximum_packets: int | None = None
    #: For the estimated cost of a job; None: there is none.
    price_per_cpu_hour: float | None = None
