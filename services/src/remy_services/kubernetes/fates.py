"""How a worker's pod fares, told by conditions and exit codes, never by the text of a message.

The exit codes are part of the worker's contract; the chart's `podFailurePolicy` lists the same.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from remy_services.kubernetes.observed import ObservedPod

#: A worker that was told to end by a signal, and did.
INTERRUPTED: Final = 143
#: Leeway for an API server's clock that differs from this one's.
_CLOCK_SKEW_SECONDS: Final = 5.0


class Fate(Enum):
    """How a pod fares."""

    #: It has not started yet.
    WAITING = auto()
    RUNNING = auto()
    #: It is being ended.
    LEAVING = auto()
    #: It should have ended by now, but its node does not say so: the node is probably gone.
    LOST = auto()
    #: It did its work to the end.
    DONE = auto()
    #: The cluster took its place away: a node reclaimed or drained, or for a higher priority.
    PREEMPTED = auto()
    #: It was told to end and did, as when there are to be fewer workers.
    STOPPED = auto()
    FAILED = auto()


def fate_of(pod: ObservedPod, now: float) -> Fate:
    """How the pod fares at the time `now`, in seconds since 1970."""
    if pod.phase == "Succeeded":
        return Fate.DONE
    if pod.phase == "Failed":
        return _end_of(pod)
    if pod.ends_at is not None:
        return Fate.LOST if now > pod.ends_at + _CLOCK_SKEW_SECONDS else Fate.LEAVING
    return Fate.RUNNING if pod.phase == "Running" else Fate.WAITING


def _end_of(pod: ObservedPod) -> Fate:
    if pod.disruption is not None:
        return Fate.PREEMPTED
    return Fate.STOPPED if pod.exit_code == INTERRUPTED else Fate.FAILED
