"""The cluster's Jobs and Pods, as far as they matter here, read from the API's JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
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
    #: "Pending", "Running", "Succeeded", "Failed" or "Unknown".
    phase: str
    #: When the cluster will have ended it, in seconds since 1970; None: it is not being ended.
    ends_at: float | None = None
    #: Why it was taken away by the cluster, as in "PreemptionByScheduler"; None: it was not.
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
        phase=status.get("phase", "Unknown"),
        ends_at=_seconds(metadata.get("deletionTimestamp")),
        disruption=disruption.get("reason", "Disrupted") if disruption else None,
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
