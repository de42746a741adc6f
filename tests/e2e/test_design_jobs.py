"""DesignJobs on a real cluster: applied, paused, deleted, and through a lost coordinator."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remy_farm.specification import load_spec
from remy_services.kubernetes.design_jobs import API_VERSION, KIND, tree_of
from tests.e2e.conftest import Report
from tests.e2e.designs import digest_of, embedded, write_spec
from tests.e2e.farm import COORDINATOR, Farm
from tests.e2e.kubectl import run
from tests.e2e.settings import needs_cluster
from tests.waiting import wait_until

pytestmark = needs_cluster


@pytest.fixture(scope="module")
def farm_of_objects(farm: Farm) -> Iterator[Farm]:
    """The farm with DesignJobs enabled until the end of these tests."""
    farm.install({"designJobs": {"enabled": True}})
    yield farm
    # The DesignJobs are deleted first, while a coordinator can remove their finalizers.
    farm.kubectl("delete", "designjobs", "--all", "--timeout=120s")
    farm.install()
    run(["kubectl", "delete", "customresourcedefinition", "designjobs.remy-farm.dev"])


def test_design_job_gives_the_same_bytes_after_a_lost_coordinator(
    farm_of_objects: Farm, tmp_path: Path, report: Report
) -> None:
    farm = farm_of_objects
    spec = write_spec(tmp_path, steps=400, seed=41, workers="{minimum: 2, maximum: 2}")
    _apply(farm, "applied", spec)
    _wait(farm, "applied", "jsonpath={.status.phase}=Running")
    job = _get(farm, "applied")["status"]["jobID"]
    farm.wait_for_step(job, 10)
    wait_until(lambda: len(farm.workers_of(job)) == 2, "both workers")

    (before,) = farm.kubectl.pods(COORDINATOR)
    farm.kubectl("delete", "pod", before["metadata"]["name"], "--grace-period=0", "--force")
    # The port-forward leads to the lost coordinator.
    farm.close()
    _wait(farm, "applied", "condition=Complete")
    (after,) = farm.kubectl.pods(COORDINATOR)
    assert after["metadata"]["uid"] != before["metadata"]["uid"]

    result = _get(farm, "applied")["status"]["result"]
    published = json.loads(farm.kubectl("get", "configmap", result["configMapName"], "-o", "json"))
    table = published["data"]["remycc.json"].encode()
    assert table == embedded(spec)
    assert table == farm.fetch(job)
    assert result["sha256"] == hashlib.sha256(table).hexdigest()
    _, row = farm.kubectl("get", "designjob", "applied").splitlines()
    assert row.split()[:2] == ["applied", "Succeeded"]
    assert "Succeeded" in farm.kubectl("describe", "designjob", "applied").partition("Events:")[2]
    wait_until(lambda: not farm.workers_of(job), "the end of its workers")
    report(f"400 steps, the coordinator killed, {digest_of(table)}")


def test_submitted_job_is_paused_and_resumed_by_kubectl(
    farm_of_objects: Farm, tmp_path: Path
) -> None:
    farm = farm_of_objects
    job = farm.submit(write_spec(tmp_path, steps=5000, seed=42), "submitted")
    name = f"submitted-{job}"
    wait_until(lambda: farm.kubectl.exists("designjob", name), "the job's object")
    wait_until(lambda: farm.workers_of(job), "workers")
    farm.wait_for_step(job, 3)
    _patch(farm, name, {"paused": True})
    _wait(farm, name, "jsonpath={.status.phase}=Paused")
    assert farm.state(job) == "PAUSED"
    wait_until(lambda: not farm.workers_of(job), "the end of its workers")
    reached = farm.step(job)
    _patch(farm, name, {"paused": False})
    wait_until(lambda: farm.workers_of(job), "workers")
    farm.wait_for_step(job, reached + 1)
    farm.cli("cancel", job)
    _wait(farm, name, "jsonpath={.status.phase}=Cancelled")


def test_deleted_design_job_ends_its_job_and_workers(farm_of_objects: Farm, tmp_path: Path) -> None:
    farm = farm_of_objects
    _apply(farm, "deleted", write_spec(tmp_path, steps=5000, seed=43))
    _wait(farm, "deleted", "jsonpath={.status.phase}=Running")
    job = _get(farm, "deleted")["status"]["jobID"]
    wait_until(lambda: farm.workers_of(job), "workers")
    farm.kubectl("delete", "designjob", "deleted", "--timeout=120s")
    assert farm.state(job) == "CANCELLED"
    selector = f"remy-farm/job-id={job}"

    def has_ended() -> bool:
        # A finished Job and its pods are kept until their time to live has passed.
        return all(
            any(
                each["type"] in ("Complete", "Failed") and each["status"] == "True"
                for each in one["status"].get("conditions", ())
            )
            for one in farm.kubectl.objects("jobs", selector)
        ) and all(
            pod["status"]["phase"] in ("Succeeded", "Failed")
            for pod in farm.kubectl.objects("pods", selector)
        )

    wait_until(has_ended, "the end of its Job and of its workers")


def _apply(farm: Farm, name: str, spec: Path) -> None:
    body = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {"design": tree_of(load_spec(spec))},
    }
    farm.kubectl("apply", "-f", "-", stdin=json.dumps(body))


def _patch(farm: Farm, name: str, spec: Any) -> None:
    change = json.dumps({"spec": spec})
    farm.kubectl("patch", "designjob", name, "--type=merge", f"--patch={change}")


def _wait(farm: Farm, name: str, what: str) -> None:
    command = ["kubectl", "-n", farm.namespace, "wait", f"--for={what}", f"designjob/{name}"]
    run([*command, "--timeout=600s"], seconds=620)


def _get(farm: Farm, name: str) -> Any:
    return json.loads(farm.kubectl("get", "designjob", name, "-o", "json"))
