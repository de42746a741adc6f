"""The workers of one design, counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from remy_services.kubernetes.fates import Fate, fate_of
from remy_services.kubernetes.observed import ObservedPod


@dataclass(frozen=True)
class Past:
    """Pods that have ended, by their unique ids, which outlast the pods."""

    preempted: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Census:
    """How many workers there are, how many there were, and why some are not there."""

    asked_for: int = 0
    running: int = 0
    lost: int = 0
    preempted: int = 0
    failed: int = 0
    #: Waiting pods by reason, most frequent first, and the words that came with each.
    waiting: Mapping[str, int] = field(default_factory=dict)
    waiting_words: Mapping[str, str] = field(default_factory=dict)
    #: How the last failed worker seen ended: exit code and reason.
    last_failure: tuple[int | None, str] | None = None


def remember(past: Past, pods: Iterable[ObservedPod], now: float) -> Past:
    """The past with the pods that have ended since."""
    fates = {pod.uid: fate_of(pod, now) for pod in pods}
    return Past(
        past.preempted | {uid for uid, fate in fates.items() if fate is Fate.PREEMPTED},
        past.failed | {uid for uid, fate in fates.items() if fate is Fate.FAILED},
    )


def take_census(asked_for: int, pods: Sequence[ObservedPod], past: Past, now: float) -> Census:
    """Counts the pods of a design's Job."""
    fates = [(pod, fate_of(pod, now)) for pod in sorted(pods, key=lambda pod: pod.name)]
    waiting = [pod for pod, fate in fates if fate is Fate.WAITING]
    reasons = [pod.waits_for or "Starting" for pod in waiting]
    failures = [pod for pod, fate in fates if fate is Fate.FAILED]
    return Census(
        asked_for=asked_for,
        running=sum(fate is Fate.RUNNING for _, fate in fates),
        lost=sum(fate is Fate.LOST for _, fate in fates),
        preempted=len(past.preempted),
        failed=len(past.failed),
        waiting={
            reason: reasons.count(reason)
            for reason in sorted(set(reasons), key=lambda each: (-reasons.count(each), each))
        },
        waiting_words={pod.waits_for or "Starting": pod.waits_message for pod in waiting},
        last_failure=(failures[-1].exit_code, failures[-1].exit_reason) if failures else None,
    )
