"""Budgets that need a clock: the driver reads it, and stops its designer when one is used up."""

from __future__ import annotations

from dataclasses import dataclass

from remy_farm.v1 import progress_pb2, spec_pb2


@dataclass(frozen=True)
class Elapsed:
    """Time used since a design began, without the pauses between its runs."""

    wall_seconds: float = 0.0
    #: CPU time of whoever evaluated for it.
    cpu_seconds: float = 0.0


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
