"""Every object of the chart against the schemas of the API that it is for."""

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

#: The oldest that the chart says it runs on, and one of the newest.
VERSIONS = ("1.29", "1.34")
OPERATED = {"workers": {"backend": "ray", "ray": {"operator": True, "address": ""}}}
#: Groups whose objects others define.
FOREIGN = ("cert-manager.io", "gateway.networking.k8s.io", "monitoring.coreos.com", "ray.io")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_objects_have_no_field_that_kubernetes_does_not_know(version: str, backend: str) -> None:
    check(render({"workers": {"backend": backend}}).objects, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_neither_has_any_option(version: str) -> None:
    check(render({}, "--values", str(EVERYTHING)).objects, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_nor_have_the_workers_jobs(version: str) -> None:
    template = render().launcher()["template"]
    template["metadata"] = {**template["metadata"], "name": "design"}
    check([{"apiVersion": "batch/v1", "kind": "Job", **template}], version)


@pytest.mark.parametrize("flags", [(), ("--values", str(EVERYTHING))], ids=["plain", "all"])
def test_a_ray_cluster_is_what_its_operator_reads(flags: tuple[str, ...]) -> None:
    cluster = render(OPERATED, *flags).one("RayCluster")
    jsonschema.validate(cluster, RAY_CLUSTER)
    check(pod_templates(cluster), "1.34")
    for each in pod_templates(cluster):
        # The operator takes the first container for Ray's, and gives it probes that ask for
        # Ray's dashboard unless it has some.
        assert {"readinessProbe", "livenessProbe"} <= set(each["template"]["spec"]["containers"][0])


def test_rays_head_keeps_the_books_on_a_node_that_stays() -> None:
    cluster = render(OPERATED).one("RayCluster")
    assert cluster["spec"]["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    head, *workers = [each["template"]["spec"] for each in pod_templates(cluster)]
    assert capacity(head) == "on-demand"
    assert [capacity(pod) for pod in workers] == ["spot"]


def capacity(pod: dict[str, Any]) -> str:
    """The kind of nodes that a pod prefers first."""
    terms = pod["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    return str(terms[0]["preference"]["matchExpressions"][0]["values"][0])


def test_a_field_that_is_not_known_is_found() -> None:
    """The schemas are strict: a slip in a name does not pass for an extension."""
    (service, *_) = render().all("Service")
    with pytest.raises(kubernetes_validate.ValidationError):
        check([{**service, "spec": {**service["spec"], "publishNotReadyAdresses": True}}], "1.34")


def check(objects: list[dict[str, Any]], version: str) -> None:
    assert objects
    for each in objects:
        if each["apiVersion"].partition("/")[0] not in FOREIGN:
            kubernetes_validate.validate(json.loads(json.dumps(each)), version, strict=True)
