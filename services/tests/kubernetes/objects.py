"""Templates, designs, Jobs and Pods for tests of the launcher."""

from __future__ import annotations

from typing import Any

from remy_proto.v1 import spec_pb2
from remy_services.kubernetes.manifest import (
    Design,
    LauncherSettings,
    Load,
    WorkerLimits,
    WorkersPhase,
)
from remy_services.kubernetes.observed import ObservedJob, ObservedPod

NOW = 1_700_000_000.0

TEMPLATE: dict[str, Any] = {
    "spec": {
        "backoffLimit": 20,
        "template": {
            "metadata": {"labels": {"app": "worker"}},
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "worker",
                        "image": "localhost/worker:1",
                        "env": [{"name": "A", "value": "b"}],
                        "resources": {"requests": {"cpu": "2"}},
                    }
                ],
            },
        },
    }
}

SETTINGS = LauncherSettings(
    instance="farm",
    template=TEMPLATE,
    minimum_workers=2,
    maximum_workers=8,
    limits=WorkerLimits(maximum_workers=20, images=("localhost/*",), cpus=4, memory_mib=4096),
)


def design(
    job_id: str = "0001",
    phase: WorkersPhase = WorkersPhase.RUNNING,
    *,
    workers: spec_pb2.Workers | None = None,
    load: Load | None = None,
    ended_at: float | None = None,
) -> Design:
    return Design(job_id, phase, workers or spec_pb2.Workers(), load or Load(), ended_at)


def job(name: str, job_id: str = "0001", **others: Any) -> ObservedJob:
    return ObservedJob(**{"name": name, "uid": name, "job_id": job_id, "created_at": NOW, **others})


def pod(name: str, job_name: str, job_id: str = "0001", **others: Any) -> ObservedPod:
    return ObservedPod(
        **{
            "name": name,
            "uid": name,
            "job_id": job_id,
            "job_name": job_name,
            "job_uid": job_name,
            "phase": "Running",
            **others,
        }
    )
