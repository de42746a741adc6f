"""Builds the Kubernetes Job of a design from the launcher's settings."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from remy_farm.files import FileError, read_file
from remy_proto.v1 import job_pb2, spec_pb2
from remy_services.kubernetes.observed import (
    COMPONENT,
    COMPONENT_LABEL,
    INSTANCE_LABEL,
    JOB_ID_LABEL,
)


class KubernetesError(Exception):
    """An operation on the cluster failed. The message is one sentence."""


class ClusterUnreachable(KubernetesError):
    """The API server is unreachable or temporarily unavailable."""


class ClusterRefused(KubernetesError):
    """The API server refused the request: permission, quota, policy or invalid object."""


class ConfigurationError(Exception):
    """The launcher's settings are invalid. The message is one sentence."""


_Count = Annotated[int, Meta(ge=1)]
_Positive = Annotated[float, Meta(gt=0)]


@dataclass(frozen=True)
class Owner:
    """Owner of worker Jobs, whose deletion also deletes them."""

    api_version: str
    kind: str
    name: str
    uid: str


class WorkerLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of the `workers` section of a specification."""

    #: Maximum workers of one design.
    maximum_workers: _Count = 100
    #: Allowed images, as shell patterns ("registry.example/remy-farm/*").
    images: tuple[str, ...] = ()
    #: Maximum CPUs and memory of one worker.
    cpus: _Positive = 64.0
    memory_mib: _Count = 262144


class QueuePriority(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Maps jobs with at least this priority to a Kueue WorkloadPriorityClass."""

    at_least: int
    workload_priority_class: str


class LauncherSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of the launcher."""

    #: Label value and name prefix that distinguish this farm's Jobs in the namespace.
    instance: Annotated[str, Meta(pattern="^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")]
    #: batch/v1 Job without name, farm labels, `parallelism` and `suspend`. The first container is
    #: the #: worker.
    template: dict[str, Any]
    #: Default bounds of the number of workers, if the specification sets none.
    minimum_workers: _Count = 1
    maximum_workers: _Count = 10
    limits: WorkerLimits = WorkerLimits()
    #: Kueue priority classes by job priority. Other jobs get their queue's default.
    queue_priorities: tuple[QueuePriority, ...] = ()
    #: Name of the Deployment that owns the Jobs; empty for none.
    owner_deployment: str = ""
    #: Time for the workers of a finished design to exit by themselves.
    finish_seconds: _Positive = 60.0
    #: Delay before a Job that exceeded its backoff limit is recreated.
    retry_seconds: _Positive = 300.0


_MOST_BYTES: Final = 1 << 20


def read_settings(path: Path) -> LauncherSettings:
    """Reads settings from a YAML file. Raises ConfigurationError."""
    try:
        content = read_file(path, limit=_MOST_BYTES)
        settings = msgspec.yaml.decode(content, type=LauncherSettings)
    except FileError as error:
        raise ConfigurationError(str(error)) from error
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    if settings.minimum_workers > settings.maximum_workers:
        raise ConfigurationError(
            f"{path}: minimum_workers is {settings.minimum_workers}, but must be at most "
            f"maximum_workers, which is {settings.maximum_workers}"
        )
    try:
        container = settings.template["spec"]["template"]["spec"]["containers"][0]
    except (KeyError, IndexError, TypeError):
        container = None
    if not isinstance(container, dict):
        raise ConfigurationError(f"{path}: template must be a Job whose pods have a container")
    return settings


class WorkersPhase(Enum):
    """Desired activity of a design's workers."""

    #: Workers should run.
    RUNNING = "running"
    #: Workers should stop, and may be needed again.
    PAUSED = "paused"
    #: Workers are no longer needed, and exit by themselves.
    ENDED = "ended"


_PHASES: Final = {
    job_pb2.JOB_STATE_PENDING: WorkersPhase.PAUSED,
    job_pb2.JOB_STATE_SCHEDULING: WorkersPhase.RUNNING,
    job_pb2.JOB_STATE_RUNNING: WorkersPhase.RUNNING,
    job_pb2.JOB_STATE_RECOVERING: WorkersPhase.RUNNING,
    job_pb2.JOB_STATE_PAUSING: WorkersPhase.PAUSED,
    job_pb2.JOB_STATE_PAUSED: WorkersPhase.PAUSED,
    job_pb2.JOB_STATE_CANCELLING: WorkersPhase.ENDED,
    job_pb2.JOB_STATE_CANCELLED: WorkersPhase.ENDED,
    job_pb2.JOB_STATE_SUCCEEDED: WorkersPhase.ENDED,
    job_pb2.JOB_STATE_FAILED: WorkersPhase.ENDED,
}


@dataclass(frozen=True)
class Load:
    """Amount of work of a design; None where unknown."""

    #: Number of simulations of a step, which can all run in parallel.
    step_simulations: int | None = None
    #: Recent fraction of time with all worker threads busy.
    saturated_share: float | None = None
    #: Remaining CPU time of the design's budget.
    cpu_seconds_left: float | None = None


@dataclass(frozen=True)
class Design:
    """Attributes of a design job that determine its workers."""

    job_id: str
    phase: WorkersPhase
    workers: spec_pb2.Workers = field(default_factory=spec_pb2.Workers)
    load: Load = field(default_factory=Load)
    #: Unix time of its end; None while it has not ended.
    ended_at: float | None = None
    priority: int = 0
    #: Kueue queue of its Job; empty for the template's queue, if any.
    queue_name: str = ""


def design_of(job: job_pb2.Job, saturated_share: float | None = None) -> Design:
    """Builds the Design of a job. For `saturated_share` see Load."""
    ended_at = job.end_time.seconds + job.end_time.nanos / 1e9 if job.HasField("end_time") else None
    progress, stop = job.progress, job.spec.stop
    left = stop.cpu_seconds - progress.cpu_seconds if stop.HasField("cpu_seconds") else None
    simulations = progress.candidates * job.spec.search.specimens
    load = Load(simulations or None, saturated_share, left)
    # An evaluation job has no specification, so the launcher's defaults apply to its workers.
    workers = job.spec.workers
    return Design(job.id, _PHASES[job.state], workers, load, ended_at, job.priority, job.queue_name)


#: Environment variable that dedicates a worker to a job.
JOB_VARIABLE: Final = "REMY_FARM_WORKER_JOB"
_QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
_QUEUE_PRIORITY_LABEL: Final = "kueue.x-k8s.io/priority-class"
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_NAME_PART: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?")
_MAX_NAME_BYTES: Final = 63


def job_of(design: Design, settings: LauncherSettings, owner: Owner | None) -> dict[str, Any]:
    """Builds a design's Job without `parallelism` and `suspend`, which may change.

    The name contains a digest of everything else, so a changed image or template gives another Job.
    Raises ClusterRefused if the specification exceeds the limits.
    """
    trouble = limit_violation(design.workers, settings.limits)
    if trouble is not None:
        raise ClusterRefused(trouble)
    job: dict[str, Any] = copy.deepcopy(dict(settings.template))
    job["apiVersion"], job["kind"] = "batch/v1", "Job"
    metadata = job.setdefault("metadata", {})
    labels = {
        INSTANCE_LABEL: settings.instance,
        COMPONENT_LABEL: COMPONENT,
        JOB_ID_LABEL: label_of(design.job_id),
    }
    pod = job["spec"]["template"]
    for each in (metadata, pod.setdefault("metadata", {})):
        each["labels"] = {**(each.get("labels") or {}), **labels}
    if design.queue_name:
        metadata["labels"][_QUEUE_LABEL] = design.queue_name
    fitting = [each for each in settings.queue_priorities if each.at_least <= design.priority]
    if fitting and is_queued(job):
        highest = max(fitting, key=lambda each: each.at_least)
        metadata["labels"][_QUEUE_PRIORITY_LABEL] = highest.workload_priority_class
    _set_up_worker(pod["spec"]["containers"][0], design)
    digest = hashlib.sha256(json.dumps(job, sort_keys=True).encode()).hexdigest()[:8]
    metadata["name"] = _name(settings.instance, design.job_id, digest)
    if owner is not None:
        metadata["ownerReferences"] = [_reference(owner)]
    return job


def limit_violation(workers: spec_pb2.Workers, limits: WorkerLimits) -> str | None:
    """Returns one sentence about a violated limit of `workers`, or None."""
    if workers.HasField("image") and not any(
        fnmatchcase(workers.image, pattern) for pattern in limits.images
    ):
        allowed = ", ".join(limits.images) or "only its own image"
        return f"workers.image is {workers.image}, but this farm allows {allowed}"
    if workers.cpus > limits.cpus:
        return f"workers.cpus is {workers.cpus:g}, but this farm allows at most {limits.cpus:g}"
    if workers.memory_mib > limits.memory_mib:
        return (
            f"workers.memory_mib is {workers.memory_mib}, but this farm allows at most "
            f"{limits.memory_mib}"
        )
    if workers.minimum > limits.maximum_workers:
        return (
            f"workers.minimum is {workers.minimum}, but this farm allows at most "
            f"{limits.maximum_workers}"
        )
    return None


def is_queued(job: Mapping[str, Any]) -> bool:
    """Returns whether Kueue manages the Job. Then `suspend` is owned by Kueue."""
    return _QUEUE_LABEL in (job.get("metadata", {}).get("labels") or {})


def threads_of(job: Mapping[str, Any]) -> int:
    """Returns the number of simulation threads of a worker: its requested CPUs, rounded up."""
    resources = job["spec"]["template"]["spec"]["containers"][0].get("resources") or {}
    resources_asked = [(resources.get(kind) or {}).get("cpu") for kind in ("requests", "limits")]
    # Without a request, Kubernetes uses the limit as the request.
    text = str(next(filter(None, resources_asked), "1"))
    value = float(text[:-1]) / 1000 if text.endswith("m") else float(text)
    return max(1, -int(-value // 1))


def label_of(job_id: str) -> str:
    """Returns the job id as a valid label value, hashed if necessary."""
    if _LABEL_VALUE.fullmatch(job_id):
        return job_id
    return hashlib.sha256(job_id.encode()).hexdigest()[:20]


def _set_up_worker(container: dict[str, Any], design: Design) -> None:
    workers = design.workers
    others = [each for each in container.get("env") or () if each["name"] != JOB_VARIABLE]
    container["env"] = [*others, {"name": JOB_VARIABLE, "value": design.job_id}]
    if workers.HasField("image"):
        container["image"] = workers.image
    resources_asked = {}
    if workers.HasField("cpus"):
        resources_asked["cpu"] = f"{round(workers.cpus * 1000)}m"
    if workers.HasField("memory_mib"):
        resources_asked["memory"] = f"{workers.memory_mib}Mi"
    if resources_asked:
        resources = container.setdefault("resources", {})
        for kind in ("requests", "limits"):
            resources[kind] = {**(resources.get(kind) or {}), **resources_asked}


def _name(instance: str, job_id: str, digest: str) -> str:
    part = job_id if _NAME_PART.fullmatch(job_id) else label_of(f"{job_id}:")
    end = f"-{part}-{digest}"
    return instance[: _MAX_NAME_BYTES - len(end)].rstrip("-") + end


def _reference(owner: Owner) -> dict[str, Any]:
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "blockOwnerDeletion": False,
        "controller": False,
    }
