"""Budgets: those given for a run in place of the specification's, and those that need a clock."""

from __future__ import annotations

from remy_farm.v1 import progress_pb2, spec_pb2
from remy_services.embedded.clock import Elapsed


def with_budget(
    spec: spec_pb2.DesignSpec,
    *,
    max_steps: int | None = None,
    max_cpu_seconds: float | None = None,
    max_wall_seconds: float | None = None,
) -> spec_pb2.DesignSpec:
    """The specification with other budgets where they are given.

    All of them count from the beginning of the design, through every resume.
    """
    changed = spec_pb2.DesignSpec()
    changed.CopyFrom(spec)
    if max_steps is not None:
        changed.stop.steps = max_steps
    if max_cpu_seconds is not None:
        changed.stop.cpu_seconds = max_cpu_seconds
    if max_wall_seconds is not None:
        changed.stop.wall_seconds = max_wall_seconds
    return changed


def exhausted(stop: spec_pb2.Stop, elapsed: Elapsed) -> progress_pb2.StopReason | None:
    """Which of the budgets that need a clock is used up, if one is."""
    if stop.HasField("cpu_seconds") and elapsed.cpu_seconds >= stop.cpu_seconds:
        return progress_pb2.STOP_REASON_CPU_SECONDS
    if stop.HasField("wall_seconds") and elapsed.wall_seconds >= stop.wall_seconds:
        return progress_pb2.STOP_REASON_WALL_SECONDS
    return None


def seconds_left(
    stop: spec_pb2.Stop,
    elapsed: Elapsed,
    *,
    steps: float,
    epochs: int,
    share_done: float | None,
) -> float | None:
    """A guess at the wall time, in seconds, until the first budget is used up.

    Assumes that the design goes on at its average pace; `steps` may count the running step in part,
    and `share_done` is how much of a search of fixed length is done.
    None where there is nothing to go by.
    """
    pace = elapsed.wall_seconds
    guesses = []
    if stop.HasField("wall_seconds"):
        guesses.append(stop.wall_seconds - pace)
    if stop.HasField("cpu_seconds") and elapsed.cpu_seconds > 0:
        guesses.append((stop.cpu_seconds - elapsed.cpu_seconds) * pace / elapsed.cpu_seconds)
    if stop.HasField("steps") and steps > 0:
        guesses.append((stop.steps - steps) * pace / steps)
    if stop.HasField("epochs") and epochs > 0:
        guesses.append((stop.epochs - epochs) * pace / epochs)
    if share_done:
        guesses.append((1 - share_done) * pace / share_done)
    return max(min(guesses), 0.0) if guesses else None
