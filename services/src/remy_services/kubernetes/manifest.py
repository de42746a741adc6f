"""The Job of a design, as it is sent to Kubernetes."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from remy_farm.v1 import spec_pb2
from remy_services.kubernetes.designs import Design
from remy_services.kubernetes.errors import Refused
from remy_services.kubernetes.observed import (
    COMPONENT,
    COMPONENT_LABEL,
    INSTANCE_LABEL,
    JOB_ID_LABEL,
)
from remy_services.kubernetes.settings import LauncherSettings, Limits, Owner

#: Names the design to a worker, which then takes tasks of no other.
JOB_VARIABLE: Final = "REMY_FARM_WORKER_JOB"
_QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_NAME_PART: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?")
_MOST_NAME_BYTES: Final = 63


def job_of(design: Design, settings: LauncherSettings, owner: Owner | None) -> dict[str, Any]:
    """The Job without `parallelism` and `suspend`, the two things about it that may change.

    Its name holds a digest of all the rest, so that another image or another template is another
    Job. Raises Refused if the specification asks for more than the limits allow.
    """
    trouble = beyond_limits(design.workers, settings.limits)
    if trouble is not None:
        raise Refused(trouble)
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
    _set_up_worker(pod["spec"]["containers"][0], design)
    digest = hashlib.sha256(json.dumps(job, sort_keys=True).encode()).hexdigest()[:8]
    metadata["name"] = _name(settings.instance, design.job_id, digest)
    if owner is not None:
        metadata["ownerReferences"] = [_reference(owner)]
    return job


def beyond_limits(workers: spec_pb2.Workers, limits: Limits) -> str | None:
    """What of a specification's `workers` this farm does not allow, in one sentence."""
    if workers.HasField("image") and not any(
        fnmatchcase(workers.image, pattern) for pattern in limits.images
    ):
        allowed = ", ".join(limits.images) or "none but its own"
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


def is_queued(template: Mapping[str, Any]) -> bool:
    """Whether Kueue decides when Jobs made from this run; then `suspend` is Kueue's field."""
    return _QUEUE_LABEL in (template.get("metadata", {}).get("labels") or {})


def threads_of(job: Mapping[str, Any]) -> int:
    """Threads that a worker of the Job simulates with: the CPUs it may use, rounded up."""
    resources = job["spec"]["template"]["spec"]["containers"][0].get("resources") or {}
    cpus = (resources.get("limits") or {}).get("cpu") or (resources.get("requests") or {}).get(
        "cpu", "1"
    )
    text = str(cpus)
    value = float(text[:-1]) / 1000 if text.endswith("m") else float(text)
    return max(1, -int(-value // 1))


def label_of(job_id: str) -> str:
    """The id as a label's value."""
    if _LABEL_VALUE.fullmatch(job_id):
        return job_id
    return hashlib.sha256(job_id.encode()).hexdigest()[:20]


def _set_up_worker(container: dict[str, Any], design: Design) -> None:
    workers = design.workers
    others = [each for each in container.get("env") or () if each["name"] != JOB_VARIABLE]
    container["env"] = [*others, {"name": JOB_VARIABLE, "value": design.job_id}]
    if workers.HasField("image"):
        container["image"] = workers.image
    asked = {}
    if workers.HasField("cpus"):
        asked["cpu"] = f"{round(workers.cpus * 1000)}m"
    if workers.HasField("memory_mib"):
        asked["memory"] = f"{workers.memory_mib}Mi"
    if asked:
        resources = container.setdefault("resources", {})
        for kind in ("requests", "limits"):
            resources[kind] = {**(resources.get(kind) or {}), **asked}


def _name(instance: str, job_id: str, digest: str) -> str:
    part = job_id if _NAME_PART.fullmatch(job_id) else label_of(f"{job_id}:")
    end = f"-{part}-{digest}"
    return instance[: _MOST_NAME_BYTES - len(end)].rstrip("-") + end


def _reference(owner: Owner) -> dict[str, Any]:
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "blockOwnerDeletion": False,
        "controller": False,
    }
