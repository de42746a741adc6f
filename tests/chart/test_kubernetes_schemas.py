"""Every object of the chart is valid by the schemas of its Kubernetes API."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import kubernetes_validate
import pytest

from tests.chart.ray_cluster import RAY_CLUSTER, pod_templates
from tests.chart.rendering import EVERYTHING, needs_helm, render
from tests.chart.test_chart import BACKENDS

pytestmark = needs_helm

#: The oldest Kubernetes version that the chart supports, and a recent one.
VERSIONS = ("1.29", "1.34")
OPERATED = {"workers": {"backend": "ray", "ray": {"operator": True, "address": ""}}}
#: API groups that other projects define.
FOREIGN = ("cert-manager.io", "gateway.networking.k8s.io", "monitoring.coreos.com", "ray.io")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_objects_are_valid(version: str, backend: str) -> None:
    check(render({"workers": {"backend": backend}}).objects, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_objects_with_all_options_are_valid(version: str) -> None:
    check(render({}, "--values", str(EVERYTHING)).objects, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_worker_job_template_is_valid(version: str) -> None:
    template = render().launcher()["template"]
    template["metadata"] = {**template["metadata"], "name": "design"}
    check([{"apiVersion": "batch/v1", "kind": "Job", **template}], version)


@pytest.mark.parametrize("flags", [(), ("--values", str(EVERYTHING))], ids=["plain", "all"])
def test_ray_cluster_is_valid(flags: tuple[str, ...]) -> None:
    cluster = render(OPERATED, *flags).one("RayCluster")
    jsonschema.validate(cluster, RAY_CLUSTER)
    check(pod_templates(cluster), "1.34")
    for each in pod_templates(cluster):
        # The operator assumes that the first container is Ray's, and adds probes of Ray's dashboard
        # to it unless it has probes.
        assert {"readinessProbe", "livenessProbe"} <= set(each["template"]["spec"]["containers"][0])


def test_ray_head_prefers_on_demand_nodes() -> None:
    cluster = render(OPERATED).one("RayCluster")
    assert cluster["spec"]["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    head, *workers = [each["template"]["spec"] for each in pod_templates(cluster)]
    assert capacity(head) == "on-demand"
    assert [capacity(pod) for pod in workers] == ["spot"]


def capacity(pod: dict[str, Any]) -> str:
    """Returns the capacity type that a pod prefers most."""
    terms = pod["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    return str(terms[0]["preference"]["matchExpressions"][0]["values"][0])


def test_unknown_field_is_refused() -> None:
    """The schemas are strict, so that a misspelt field is not accepted as an extension."""
    (service, *_) = render().all("Service")
    with pytest.raises(kubernetes_validate.ValidationError):
        check([{**service, "spec": {**service["spec"], "publishNotReadyAdresses": True}}], "1.34")


def check(objects: list[dict[str, Any]], version: str) -> None:
    assert objects
    for each in objects:
        if each["apiVersion"].partition("/")[0] not in FOREIGN:
            kubernetes_validate.validate(json.loads(json.dumps(each)), version, strict=True)
