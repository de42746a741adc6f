"""Observed Jobs and Pods: their state, and counts of workers by phase."""

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
    """Observed state of a batch/v1 Job."""

    name: str
    uid: str
    job_id: str
    parallelism: int = 1
    #: Desired workers when the Job was applied, without replacements for lost pods.
    workers: int | None = None
    suspended: bool = False
    #: Whether the Job is being deleted.
    deleting: bool = False
    #: Failure reason such as "BackoffLimitExceeded"; None if it has not failed.
    failure: str | None = None
    failure_message: str = ""
    complete: bool = False
    #: Unix times of creation, and of failure or completion.
    created_at: float = 0.0
    finished_at: float | None = None

    @property
    def finished(self) -> bool:
        """Whether the Job has completed or failed."""
        return self.complete or self.failure is not None


@dataclass(frozen=True)
class ObservedPod:
    """Observed state of a worker Pod."""

    name: str
    uid: str
    job_id: str
    job_name: str
    #: Uid of its Job, which differs for a recreated Job of the same name.
    job_uid: str
    #: "Pending", "Running", "Succeeded", "Failed" or "Unknown".
    phase: str
    #: Unix time by which the pod should be deleted; None if it is not being deleted.
    ends_at: float | None = None
    #: Disruption reason such as "PreemptionByScheduler"; None if it was not disrupted.
    disruption: str | None = None
    #: Exit code of the worker; None if it has not exited.
    exit_code: int | None = None
    exit_reason: str = ""
    #: Why the pod has not started, such as "Unschedulable"; None if it has.
    waits_for: str | None = None
    waits_message: str = ""


def observed_job(job: Mapping[str, Any]) -> ObservedJob:
    """Parses a Job from the API's JSON."""
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
        deleting=metadata.get("deletionTimestamp") is not None,
        failure=failed.get("reason", "Failed") if failed else None,
        failure_message=failed.get("message", "") if failed else "",
        complete=complete is not None,
        created_at=_seconds(metadata.get("creationTimestamp")) or 0.0,
        finished_at=_seconds(finished.get("lastTransitionTime")) if finished else None,
    )


def observed_pod(pod: Mapping[str, Any]) -> ObservedPod:
    """Parses a Pod from the API's JSON."""
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


# Pod phases are derived from conditions and exit codes, never from message texts. # The exit codes
# are part of the worker's contract; the chart's `podFailurePolicy` lists the same ones.


#: Exit code of a worker that exited after SIGTERM.
INTERRUPTED: Final = 143
#: Exit code reported by the container runtime if it did not see the exit, because the node rebooted
#: #: before Kubernetes noticed. No worker exits with it.
UNSEEN: Final = 255
#: Reason reported by a kubelet that does not find the container.
_NO_TRACE: Final = "ContainerStatusUnknown"
#: Exit codes of crashes: an error of the worker, or SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE,
#: SIGSEGV. #: SIGKILL is not a crash, because it comes from outside.
_CRASHES: Final = frozenset({1, 132, 133, 134, 135, 136, 139})
#: Tolerance for differences between the clocks of this machine and the API server.
_CLOCK_SKEW_SECONDS: Final = 5.0


class PodPhase(Enum):
    """Phase of a worker pod."""

    #: Not started yet.
    WAITING = auto()
    RUNNING = auto()
    #: Being terminated.
    TERMINATING = auto()
    #: Past its deletion deadline without confirmation by its node, which is probably gone.
    LOST = auto()
    #: Exited successfully.
    DONE = auto()
    #: Disrupted by the cluster: node reclaimed or drained, or preempted by priority.
    PREEMPTED = auto()
    #: Exited on SIGTERM, for example after scaling down.
    STOPPED = auto()
    FAILED = auto()


def _unseen_end(ended: Mapping[str, Any]) -> str | None:
    """Returns a disruption reason for a pod that ended with its node but lacks a condition."""
    is_unseen = ended.get("exitCode") == UNSEEN or ended.get("reason") == _NO_TRACE
    return "NodeStartedAnew" if is_unseen else None


def phase_of(pod: ObservedPod, now: float) -> PodPhase:
    """Returns the pod's phase at Unix time `now`."""
    if pod.phase == "Succeeded":
        return PodPhase.DONE
    if pod.phase == "Failed":
        return _end_of(pod)
    if pod.ends_at is not None:
        return PodPhase.LOST if now > pod.ends_at + _CLOCK_SKEW_SECONDS else PodPhase.TERMINATING
    return PodPhase.RUNNING if pod.phase == "Running" else PodPhase.WAITING


def _end_of(pod: ObservedPod) -> PodPhase:
    if pod.disruption is not None:
        return PodPhase.PREEMPTED
    return PodPhase.STOPPED if pod.exit_code == INTERRUPTED else PodPhase.FAILED


def has_crashed(pod: ObservedPod) -> bool:
    """Returns whether the worker crashed on a live node."""
    by_itself = pod.exit_code in _CRASHES or pod.exit_reason == "OOMKilled"
    return by_itself and pod.disruption is None


#: Backoff of Kubernetes' Job controller after failed pods (DefaultJobPodFailureBackOff, #:
#: MaxJobPodFailureBackOff). It doubles per failure, resets only after a successful pod, and also
#: counts #: failures that `podFailurePolicy` ignores.
_MIN_BACKOFF_SECONDS: Final = 10.0
_MAX_BACKOFF_SECONDS: Final = 600.0


@dataclass(frozen=True)
class Losses:
    """Pods of one Job that were or will be disrupted by the cluster.

    Pods that failed by themselves are not counted: the controller's backoff is meant for them.
    """

    #: Uids of disrupted pods.
    doomed: frozenset[str] = frozenset()
    #: Number of disrupted pods that have ended, and Unix time of the last end.
    count: int = 0
    last_at: float = 0.0

    def updated(self, pods: Sequence[ObservedPod], now: float) -> Losses:
        """Returns the losses including those among `pods`.

        Vanished disrupted pods count as ended.
        """
        doomed = self.doomed | {pod.uid for pod in pods if pod.disruption is not None}
        count = len(doomed - {pod.uid for pod in pods if pod.phase != "Failed"})
        return Losses(doomed, count, now if count > self.count else self.last_at)

    def seconds_to_wait(self, now: float) -> float:
        """Returns for how long the Job controller will not replace these pods."""
        if self.count == 0:
            return 0.0
        wait = min(_MAX_BACKOFF_SECONDS, _MIN_BACKOFF_SECONDS * 2.0 ** min(self.count - 1, 10))
        return max(0.0, self.last_at + wait - now)


@dataclass(frozen=True)
class Past:
    """Uids of ended pods, kept after the pods are deleted."""

    preempted: frozenset[str] = frozenset()
    failed: frozenset[str] = frozenset()
    #: Losses of each existing Job by its uid.
    losses: Mapping[str, Losses] = field(default_factory=dict)


@dataclass(frozen=True)
class PodPhaseCounts:
    """Counts of worker pods by phase, with reasons for waiting and failed ones."""

    desired: int = 0
    running: int = 0
    lost: int = 0
    preempted: int = 0
    failed: int = 0
    #: Waiting pods by reason, most frequent first, and a message for each reason.
    waiting: Mapping[str, int] = field(default_factory=dict)
    waiting_messages: Mapping[str, str] = field(default_factory=dict)
    #: Exit code and reason of the last failed worker.
    last_failure: tuple[int | None, str] | None = None

    def by_phase_and_end(self) -> tuple[dict[str, int], dict[str, int]]:
        """Returns desired and present pods by phase, and ended pods by reason."""
        unschedulable = self.waiting.get("Unschedulable", 0)
        phases = {
            "wanted": self.desired,
            "running": self.running,
            "unschedulable": unschedulable,
            "starting": sum(self.waiting.values()) - unschedulable,
            "lost": self.lost,
        }
        return phases, {"preempted": self.preempted, "failed": self.failed}


def remember(
    past: Past, jobs: Iterable[ObservedJob], pods: Sequence[ObservedPod], now: float
) -> Past:
    """Returns the past updated with a design's pods that have ended since."""
    phases = {pod.uid: phase_of(pod, now) for pod in pods}
    return Past(
        past.preempted | {uid for uid, phase in phases.items() if phase is PodPhase.PREEMPTED},
        past.failed | {uid for uid, phase in phases.items() if phase is PodPhase.FAILED},
        {
            job.uid: past.losses.get(job.uid, Losses()).updated(
                [pod for pod in pods if pod.job_uid == job.uid], now
            )
            for job in jobs
        },
    )


def count_pods(desired: int, pods: Sequence[ObservedPod], past: Past, now: float) -> PodPhaseCounts:
    """Counts the pods of a design's Job by phase."""
    phases = [(pod, phase_of(pod, now)) for pod in sorted(pods, key=lambda pod: pod.name)]
    waiting = [pod for pod, phase in phases if phase is PodPhase.WAITING]
    reasons = [pod.waits_for or "Starting" for pod in waiting]
    failures = [pod for pod, phase in phases if phase is PodPhase.FAILED]
    return PodPhaseCounts(
        desired=desired,
        running=sum(phase is PodPhase.RUNNING for _, phase in phases),
        lost=sum(phase is PodPhase.LOST for _, phase in phases),
        preempted=len(past.preempted),
        failed=len(past.failed),
        waiting={
            reason: reasons.count(reason)
            for reason in sorted(set(reasons), key=lambda each: (-reasons.count(each), each))
        },
        waiting_messages={pod.waits_for or "Starting": pod.waits_message for pod in waiting},
        last_failure=(failures[-1].exit_code, failures[-1].exit_reason) if failures else None,
    )
