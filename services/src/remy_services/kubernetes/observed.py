"""The cluster's Jobs and Pods as observed: their conditions, and their workers counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import Any, Final

JOB_ID_LABEL: Final = "remy-farm/job-id"
WORKERS_ANNOTATION: Final = "remy-farm/workers"
INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
COMPONENT: Final = "worker-job"


@dataclass(frozen=True)
class ObservedJob:
    """A batch/v1 Job."""

    name: str
    uid: str
    job_id: str
    parallelism: int = 1
    #: Workers that were meant when it was applied, without those that stand in for lost ones.
    workers: int | None = None
    suspended: bool = False
    #: Whether it is being deleted.
    leaving: bool = False
    #: Why it failed, as in "BackoffLimitExceeded", and in words; None: it has not.
    failure: str | None = None
    failure_message: str = ""
    complete: bool = False
    #: When it was made, and when it failed or was complete, in seconds since 1970.
    created_at: float = 0.0
    finished_at: float | None = None

    @property
    def finished(self) -> bool:
        """Whether no pod of it will run any more."""
        return self.complete or self.failure is not None


@dataclass(frozen=True)
class ObservedPod:
    """A Pod of such a Job."""

    name: str
    uid: str
    job_id: str
    job_name: str
    #: The unique id of its Job, which one of the same name that is made anew does not share.
    job_uid: str
    #: "Pending", "Running", "Succeeded", "Failed" or "Unknown".
    phase: str
    #: When the cluster will have ended it, in seconds since 1970; None: it is not being ended.
    ends_at: float | None = None
    #: Why the cluster took it away, as in "PreemptionByScheduler"; None: it did not.
    disruption: str | None = None
    #: How its worker ended; None: it did not.
    exit_code: int | None = None
    exit_reason: str = ""
    #: Why it does not run yet, as in "Unschedulable", and in words; None: it does, or did.
    waits_for: str | None = None
    waits_message: str = ""


def observed_job(job: Mapping[str, Any]) -> ObservedJob:
    """A Job from the API's JSON."""
    metadata, spec, status = job["metadata"], job.get("spec") or {}, job.get("status") or {}
    failed = _condition(status, "Failed")
    complete = _condition(status, "Complete")
    finished = failed or complete
    return ObservedJob(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        job_id=_labels(metadata).get(JOB_ID_LABEL, ""),
        parallelism=spec.get("parallelism", 1),
        workers=_count((metadata.get("annotations") or {}).get(WORKERS_ANNOTATION)),
        suspended=bool(spec.get("suspend")),
        leaving=metadata.get("deletionTimestamp") is not None,
        failure=failed.get("reason", "Failed") if failed else None,
        failure_message=failed.get("message", "") if failed else "",
        complete=complete is not None,
        created_at=_seconds(metadata.get("creationTimestamp")) or 0.0,
        finished_at=_seconds(finished.get("lastTransitionTime")) if finished else None,
    )


def observed_pod(pod: Mapping[str, Any]) -> ObservedPod:
    """A Pod from the API's JSON."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    labels = _labels(metadata)
    disruption = _condition(status, "DisruptionTarget")
    states = [each.get("state") or {} for each in status.get("containerStatuses") or ()]
    ended: Mapping[str, Any] = next(
        (state["terminated"] for state in states if state.get("terminated")), {}
    )
    waits_for, message = _waiting(status, states)
    return ObservedPod(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        job_id=labels.get(JOB_ID_LABEL, ""),
        job_name=labels.get("batch.kubernetes.io/job-name", ""),
        job_uid=next((each["uid"] for each in metadata.get("ownerReferences") or ()), ""),
        phase=status.get("phase", "Unknown"),
        ends_at=_seconds(metadata.get("deletionTimestamp")),
        disruption=disruption.get("reason", "Disrupted") if disruption else _unseen_end(ended),
        exit_code=ended.get("exitCode"),
        exit_reason=ended.get("reason") or "",
        waits_for=waits_for,
        waits_message=message,
    )


def _waiting(
    status: Mapping[str, Any], states: Sequence[Mapping[str, Any]]
) -> tuple[str | None, str]:
    if status.get("phase") != "Pending":
        return None, ""
    scheduled = _condition(status, "PodScheduled", value="False")
    if scheduled:
        return scheduled.get("reason", "Unschedulable"), scheduled.get("message", "")
    waiting = next((state["waiting"] for state in states if state.get("waiting")), None)
    if waiting:
        return waiting.get("reason", "Waiting"), waiting.get("message", "")
    return "Starting", ""


def _condition(
    status: Mapping[str, Any], kind: str, *, value: str = "True"
) -> Mapping[str, Any] | None:
    conditions: Sequence[Mapping[str, Any]] = status.get("conditions") or ()
    for condition in conditions:
        if condition.get("type") == kind and condition.get("status") == value:
            return condition
    return None


def _labels(metadata: Mapping[str, Any]) -> Mapping[str, str]:
    return metadata.get("labels") or {}


def _seconds(stamp: str | None) -> float | None:
    return None if stamp is None else datetime.fromisoformat(stamp).timestamp()


def _count(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


# How a worker's pod fares, told by conditions and exit codes, never by the text of a message.
#
# The exit codes are part of the worker's contract; the chart's `podFailurePolicy` lists the same.


#: A worker that was told to end by a signal, and did.
INTERRUPTED: Final = 143
#: What a container runtime says of an end that it did not see: the node was started anew below the
#: pod, sooner than Kubernetes would miss it. No worker ends so by itself.
UNSEEN: Final = 255
#: What a kubelet says that finds no trace of the container.
_NO_TRACE: Final = "ContainerStatusUnknown"
#: An error of the worker's own, and the signals by which a process ends itself: SIGILL, SIGTRAP,
#: SIGABRT, SIGBUS, SIGFPE, SIGSEGV. SIGKILL comes from outside, as when a node goes down.
_CRASHES: Final = frozenset({1, 132, 133, 134, 135, 136, 139})
#: Leeway for an API server's clock that differs from this one's.
_CLOCK_SKEW_SECONDS: Final = 5.0


class PodPhase(Enum):
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


def _unseen_end(ended: Mapping[str, Any]) -> str | None:
    """Why a pod is as good as taken away by the cluster though it has no condition that says so."""
    is_unseen = ended.get("exitCode") == UNSEEN or ended.get("reason") == _NO_TRACE
    return "NodeStartedAnew" if is_unseen else None


def phase_of(pod: ObservedPod, now: float) -> PodPhase:
    """How the pod fares at the time `now`, in seconds since 1970."""
    if pod.phase == "Succeeded":
        return PodPhase.DONE
    if pod.phase == "Failed":
        return _end_of(pod)
    if pod.ends_at is not None:
        return PodPhase.LOST if now > pod.ends_at + _CLOCK_SKEW_SECONDS else PodPhase.LEAVING
    return PodPhase.RUNNING if pod.phase == "Running" else PodPhase.WAITING


def _end_of(pod: ObservedPod) -> PodPhase:
    if pod.disruption is not None:
        return PodPhase.PREEMPTED
    return PodPhase.STOPPED if pod.exit_code == INTERRUPTED else PodPhase.FAILED


def has_crashed(pod: ObservedPod) -> bool:
    """Whether the worker ended in itself, on a node that is there to say so."""
    by_itself = pod.exit_code in _CRASHES or pod.exit_reason == "OOMKilled"
    return by_itself and pod.disruption is None


#: How long Kubernetes' Job controller makes no pods after the first one that failed, twice as long
#: after each other one, and at most (DefaultJobPodFailureBackOff, MaxJobPodFailureBackOff). It
#: begins anew only with a pod that succeeds, and counts those too that `podFailurePolicy` ignores.
_FIRST_WAIT_SECONDS: Final = 10.0
_MOST_WAIT_SECONDS: Final = 600.0


@dataclass(frozen=True)
class Losses:
    """Pods of one Job that the cluster took away, or will. Those that failed by themselves are not
    among them: for these the controller's waiting is meant.
    """

    #: By their unique ids.
    doomed: frozenset[str] = frozenset()
    #: How many of them have ended, and when the last one did, in seconds since 1970.
    count: int = 0
    last_at: float = 0.0

    def with_those_of(self, pods: Sequence[ObservedPod], now: float) -> Losses:
        """The losses with those among the Job's pods. One that is doomed may end unseen."""
        doomed = self.doomed | {pod.uid for pod in pods if pod.disruption is not None}
        count = len(doomed - {pod.uid for pod in pods if pod.phase != "Failed"})
        return Losses(doomed, count, now if count > self.count else self.last_at)

    def seconds_to_wait(self, now: float) -> float:
        """For how long from `now` on the Job controller makes no pods in the place of these."""
        if self.count == 0:
            return 0.0
        wait = min(_MOST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2.0 ** min(self.count - 1, 10))
        return max(0.0, self.last_at + wait - now)


@dataclass(frozen=True)
class Past:
    """Pods that have ended, by their unique ids, which outlast the pods."""

    preempted: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    #: Those of each Job that is there, by the Job's unique id.
    losses: Mapping[str, Losses] = field(default_factory=dict)


@dataclass(frozen=True)
class PodPhaseCounts:
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

    def by_phase_and_end(self) -> tuple[dict[str, int], dict[str, int]]:
        """The pods that are asked for or there, by phase, and those that ended, by reason."""
        unschedulable = self.waiting.get("Unschedulable", 0)
        phases = {
            "wanted": self.asked_for,
            "running": self.running,
            "unschedulable": unschedulable,
            "starting": sum(self.waiting.values()) - unschedulable,
            "lost": self.lost,
        }
        return phases, {"preempted": self.preempted, "failed": self.failed}


def remember(
    past: Past, jobs: Iterable[ObservedJob], pods: Sequence[ObservedPod], now: float
) -> Past:
    """The past with the pods of a design's Jobs that have ended since."""
    phases = {pod.uid: phase_of(pod, now) for pod in pods}
    return Past(
        past.preempted | {uid for uid, phase in phases.items() if phase is PodPhase.PREEMPTED},
        past.failed | {uid for uid, phase in phases.items() if phase is PodPhase.FAILED},
        {
            job.uid: past.losses.get(job.uid, Losses()).with_those_of(
                [pod for pod in pods if pod.job_uid == job.uid], now
            )
            for job in jobs
        },
    )


def count_pods(
    asked_for: int, pods: Sequence[ObservedPod], past: Past, now: float
) -> PodPhaseCounts:
    """Counts the pods of a design's Job."""
    phases = [(pod, phase_of(pod, now)) for pod in sorted(pods, key=lambda pod: pod.name)]
    waiting = [pod for pod, phase in phases if phase is PodPhase.WAITING]
    reasons = [pod.waits_for or "Starting" for pod in waiting]
    failures = [pod for pod, phase in phases if phase is PodPhase.FAILED]
    return PodPhaseCounts(
        asked_for=asked_for,
        running=sum(phase is PodPhase.RUNNING for _, phase in phases),
        lost=sum(phase is PodPhase.LOST for _, phase in phases),
        preempted=len(past.preempted),
        failed=len(past.failed),
        waiting={
            reason: reasons.count(reason)
            for reason in sorted(set(reasons), key=lambda each: (-reasons.count(each), each))
        },
        waiting_words={pod.waits_for or "Starting": pod.waits_message for pod in waiting},
        last_failure=(failures[-1].exit_code, failures[-1].exit_reason) if failures else None,
    )
