"""Kueue admits, preempts and readmits worker Jobs by quota and priority."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Report
from tests.e2e.controllers import kueue, needs
from tests.e2e.designs import digest_of, embedded, write_spec
from tests.e2e.farm import Farm
from tests.e2e.settings import needs_cluster
from tests.waiting import wait_until

pytestmark = [needs_cluster, needs("kueue")]

#: A quota that suffices for the workers of one design, but not of two.
_QUOTA_CPU = "250m"
_TWO_WORKERS = "{minimum: 2, maximum: 2}"
_STEPS = 1000


def _object(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    version = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind}
    return {**version, "metadata": {"name": name}, **fields}


def _queues(namespace: str) -> list[dict[str, Any]]:
    """Returns a queue in the namespace, its cluster queue and the priority classes."""
    resources = [{"name": "cpu", "nominalQuota": _QUOTA_CPU}]
    resources += [{"name": "memory", "nominalQuota": "64Gi"}]
    group = {
        "coveredResources": [each["name"] for each in resources],
        "flavors": [{"name": "e2e", "resources": resources}],
    }
    quota = _object(
        "ClusterQueue",
        "e2e",
        spec={
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [group],
        },
    )
    queue = _object("LocalQueue", "e2e", spec={"clusterQueue": "e2e"})
    queue["metadata"]["namespace"] = namespace
    return [
        _object("ResourceFlavor", "e2e"),
        quota,
        queue,
        _object("WorkloadPriorityClass", "e2e-low", value=1),
        _object("WorkloadPriorityClass", "e2e-high", value=100),
    ]


@pytest.fixture
def farm_in_a_queue(farm: Farm) -> Iterator[Farm]:
    """The farm with its Jobs managed by Kueue until the end of the test."""
    classes = [
        {"atLeast": 0, "workloadPriorityClass": "e2e-low"},
        {"atLeast": 5, "workloadPriorityClass": "e2e-high"},
    ]
    with kueue(_queues(farm.namespace)):
        farm.install({"workers": {"jobs": {"queueName": "e2e", "queuePriorities": classes}}})
        yield farm
        farm.install()


def test_higher_priority_design_preempts_and_returns_the_quota(
    farm_in_a_queue: Farm, tmp_path: Path, report: Report
) -> None:
    farm = farm_in_a_queue
    specs = {
        name: write_spec(tmp_path, steps=_STEPS, seed=seed, workers=_TWO_WORKERS)
        for seed, name in enumerate(("low", "high"), start=21)
    }
    low = farm.submit(specs["low"], "low")
    farm.wait_for_step(low, 6)
    assert _workload_of(farm, low)["spec"]["priority"] == 1

    high = farm.submit(specs["high"], "high", "--priority", "5")
    farm.wait_for_step(high, 6)
    # The other design's Job was suspended and waits for the quota.
    assert _workload_of(farm, high)["spec"]["priority"] == 100
    assert "Preempted" in _conditions(_workload_of(farm, low))
    wait_until(lambda: not farm.workers_of(low), "the end of its workers")
    wait_until(lambda: "when Kueue admits" in farm.job(low)["status_message"], "a sentence on it")
    assert _job_of(farm, low)["spec"]["suspend"] is True
    reached = farm.step(low)

    # Pausing a job removes it from the queue and resuming adds it again; only Kueue sets `suspend`.
    farm.cli("pause", low)
    wait_until(lambda: not farm.kubectl.objects("jobs", f"remy-farm/job-id={low}"), "no Job")
    farm.cli("resume", low)
    wait_until(lambda: farm.kubectl.objects("jobs", f"remy-farm/job-id={low}"), "another Job")
    assert "remy-farm-launcher" not in _who_sets_suspend(farm, _job_of(farm, low))

    for job, name in ((high, "high"), (low, "low")):
        assert farm.wait_until_done(job) == "SUCCEEDED"
        assert farm.fetch(job) == embedded(specs[name])
        report(f"{name}: {_STEPS} steps, {digest_of(farm.fetch(job))}")
    assert int(farm.job(low)["progress"]["step"]) > reached
    report(f"low was preempted at step {reached} of {_STEPS}")


def _job_of(farm: Farm, job: str) -> dict[str, Any]:
    (found,) = farm.kubectl.objects("jobs", f"remy-farm/job-id={job}")
    return found


def _workload_of(farm: Farm, job: str) -> dict[str, Any]:
    """Returns Kueue's Workload of the design's Job."""
    uid = _job_of(farm, job)["metadata"]["uid"]
    (found,) = farm.kubectl.objects("workloads", f"kueue.x-k8s.io/job-uid={uid}")
    return found


def _conditions(workload: dict[str, Any]) -> set[str]:
    conditions = workload["status"].get("conditions", [])
    return {each["type"] for each in conditions if each["status"] == "True"}


def _who_sets_suspend(farm: Farm, job: dict[str, Any]) -> set[str]:
    name = job["metadata"]["name"]
    text = farm.kubectl("get", "job", name, "--show-managed-fields", "-o", "json")
    managers = json.loads(text)["metadata"]["managedFields"]
    return {
        each["manager"] for each in managers if "f:suspend" in each["fieldsV1"].get("f:spec", {})
    }
