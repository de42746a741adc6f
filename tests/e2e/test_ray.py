"""A farm whose workers are a Ray cluster, where no operator looks after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.designs import embedded, write_spec
from tests.e2e.farm import FULL_NAME, Farm
from tests.e2e.settings import needs_cluster

pytestmark = needs_cluster

#: Ray takes more than a worker of its own.
RESOURCES = {"requests": {"cpu": "500m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}}
ON_RAY = {
    "workers": {
        "backend": "ray",
        "resources": RESOURCES,
        "ray": {"replicas": 1, "headResources": RESOURCES},
    }
}


@pytest.fixture
def farm_on_ray(farm: Farm) -> Iterator[Farm]:
    """The farm, on Ray until the end of the test."""
    farm.install(ON_RAY)
    yield farm
    farm.install()


def test_a_design_on_ray_ends_in_the_same_bytes(farm_on_ray: Farm, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, steps=40, seed=3)
    job = farm_on_ray.submit(spec, "on-ray")
    assert farm_on_ray.wait_until_done(job) == "SUCCEEDED"
    assert farm_on_ray.fetch(job) == embedded(spec)
    # It was Ray that computed it: no worker of another kind is there.
    kinds = {
        pod["metadata"]["labels"]["app.kubernetes.io/component"]
        for pod in farm_on_ray.kubectl.pods(f"app.kubernetes.io/instance={FULL_NAME}")
    }
    assert kinds == {"coordinator", "redis", "ray-head", "ray-worker"}
