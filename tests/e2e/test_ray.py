"""A farm evaluates on a Ray cluster, with and without KubeRay's operator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Report
from tests.e2e.controllers import kuberay, needs
from tests.e2e.designs import digest_of, embedded, write_spec
from tests.e2e.farm import COORDINATOR, FULL_NAME, REDIS, Farm
from tests.e2e.kubectl import nodes, run
from tests.e2e.settings import kill_node, kills_nodes, needs_cluster, start_node
from tests.waiting import wait_until

pytestmark = needs_cluster

#: Ray needs more memory than a worker.
RESOURCES = {"requests": {"cpu": "500m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}}
HEAD = f"ray.io/cluster={FULL_NAME},ray.io/node-type=head"
RAY_WORKERS = f"ray.io/cluster={FULL_NAME},ray.io/node-type=worker"


def _on_ray(**ray: Any) -> dict[str, Any]:
    made = {"replicas": 1, "headResources": RESOURCES, **ray}
    return {"workers": {"backend": "ray", "resources": RESOURCES, "ray": made}}


@pytest.fixture
def farm_on_ray(farm: Farm) -> Iterator[Farm]:
    """The farm with the backend `ray` until the end of the test."""
    farm.install(_on_ray())
    yield farm
    farm.install()


@pytest.fixture
def farm_on_kuberay(farm: Farm) -> Iterator[Farm]:
    """The farm with a RayCluster of KubeRay's operator until the end of the test."""
    before = sorted(nodes())
    with kuberay():
        farm.install(_on_ray(operator=True, replicas=2))
        yield farm
        for name in before:
            if not nodes().get(name, False):
                start_node(name)
        farm.install()
        wait_until(lambda: not farm.kubectl.objects("pods", HEAD), "the end of the Ray cluster")


def test_design_on_ray_gives_the_same_bytes(farm_on_ray: Farm, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, steps=40, seed=3)
    job = farm_on_ray.submit(spec, "on-ray")
    assert farm_on_ray.wait_until_done(job) == "SUCCEEDED"
    assert farm_on_ray.fetch(job) == embedded(spec)
    # There are no other workers, so that Ray has evaluated the design.
    assert _kinds(farm_on_ray) == {"coordinator", "redis", "ray-head", "ray-worker"}


@needs("kuberay")
@kills_nodes
def test_design_survives_the_loss_of_a_ray_node_and_of_the_head(
    farm_on_kuberay: Farm, tmp_path: Path, report: Report
) -> None:
    farm = farm_on_kuberay
    spec = write_spec(tmp_path, steps=1600, specimens=64, seed=4)
    wait_until(lambda: len(farm.kubectl.pods(RAY_WORKERS)) == 2, "two Ray workers", seconds=400)
    job = farm.submit(spec, "on-kuberay")
    farm.wait_for_more_steps(job, 10)

    lost = wait_until(lambda: _node_of_a_ray_worker(farm), "a Ray worker on a node of its own")
    kill_node(lost)
    # A cloud deletes lost nodes. While lost pods are listed, the operator creates no others,
    # and both workers may have been on the node.
    run(["kubectl", "delete", "node", lost])
    farm.wait_for_more_steps(job, 10)
    start_node(lost)
    wait_until(lambda: len(farm.kubectl.pods(RAY_WORKERS)) == 2, "two Ray workers", seconds=400)

    (head,) = farm.kubectl.pods(HEAD)
    farm.kubectl("delete", "pod", head["metadata"]["name"], "--grace-period=0", "--force")
    farm.wait_for_more_steps(job, 10)
    (another,) = wait_until(lambda: farm.kubectl.pods(HEAD), "another head", seconds=400)
    assert another["metadata"]["uid"] != head["metadata"]["uid"]

    assert farm.wait_until_done(job) == "SUCCEEDED"
    assert farm.fetch(job) == embedded(spec)
    assert _kinds(farm) == {"coordinator", "redis", "ray-head", "ray-worker"}
    report(f"node {lost} and the head lost, 1600 steps, {digest_of(farm.fetch(job))}")


def _node_of_a_ray_worker(farm: Farm) -> str:
    kept = {farm.kubectl.node_of(each) for each in (COORDINATOR, REDIS, HEAD)}
    found = {str(pod["spec"]["nodeName"]) for pod in farm.kubectl.pods(RAY_WORKERS)}
    return next(iter(sorted(found - kept)), "")


def _kinds(farm: Farm) -> set[str]:
    """Returns the components that have running pods."""
    return {
        pod["metadata"]["labels"]["app.kubernetes.io/component"]
        for pod in farm.kubectl.pods(f"app.kubernetes.io/instance={FULL_NAME}")
    }
