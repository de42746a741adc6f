"""What a board goes by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BoardSettings:
    """Times are seconds; CPU seconds where a task's length is meant."""

    #: How long a worker that is not heard of keeps its leases.
    lease_seconds: float = 30.0
    #: No task is meant to take longer; one that is lost is cheap.
    longest_task_seconds: float = 1.0
    #: No task is meant to be shorter, since sending one costs as much as simulating for a
    #: millisecond; no longer, since a step ends with the thread that has the last one.
    shortest_task_seconds: float = 0.008
    #: How many tasks a thread would get if all were as long as the next one. Tasks get shorter
    #: towards the end of a request, so that threads end it together.
    tasks_per_thread: float = 2.0
    #: A running task is given to an idle worker too once it has run for `hedge_seconds` plus
    #: `hedge_factor` times what it was expected to take.
    hedge_seconds: float = 0.5
    hedge_factor: float = 2.0
    #: At most so many workers have one task at a time.
    copies: int = 3
    #: A task that ended so many workers is given up.
    ended_workers: int = 3
    #: A worker that sent so many results that fail their checks gets no more tasks.
    bad_results: int = 3
