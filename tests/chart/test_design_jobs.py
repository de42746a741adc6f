"""DesignJobs in the chart: the CRD, and the coordinator's privileges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.chart.rendering import CHART, needs_helm, objects_in, render

ON: dict[str, Any] = {"designJobs": {"enabled": True}}


@needs_helm
def test_design_jobs_are_off_by_default() -> None:
    rendered = render()
    assert not {"CustomResourceDefinition", "ClusterRole"} & rendered.kinds()
    arguments = rendered.pods()["Deployment/farm-remy-farm-coordinator"]["containers"][0]["args"]
    assert "--kubernetes-design-jobs" not in arguments


def test_validation_rules_stay_below_the_api_server_s_cost_limits() -> None:
    """The limits are 10 million per rule and 100 million in total, with lists of maximum length."""
    (definition,) = objects_in((CHART / "files" / "crds" / "designjobs.yaml").read_text())
    (version,) = definition["spec"]["versions"]
    costs = list(_costs(version["schema"]["openAPIV3Schema"], 1))
    assert max(costs) <= 10_000_000
    assert sum(costs) <= 100_000_000


def _costs(schema: dict[str, Any], times: int) -> Iterator[int]:
    for rule in schema.get("x-kubernetes-validations", ()):
        # Converting and comparing a decimal costs three; other rules cost at least their look-ups.
        yield times * 3 * rule["rule"].count("self")
    for inner in schema.get("properties", {}).values():
        yield from _costs(inner, times)
    if "items" in schema:
        yield from _costs(schema["items"], times * schema.get("maxItems", 1_000_000))


@needs_helm
def test_crd_is_kept_when_the_release_is_uninstalled() -> None:
    definition = render(ON).one("CustomResourceDefinition")
    assert definition["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    there = render({"designJobs": {"enabled": True, "installCrd": False}})
    assert "CustomResourceDefinition" not in there.kinds()


@needs_helm
@pytest.mark.parametrize("backend", ["jobs", "deployment"])
def test_coordinator_s_role_has_the_least_privileges_for_design_jobs(backend: str) -> None:
    rendered = render({**ON, "workers": {"backend": backend}})
    pod = rendered.pods()["Deployment/farm-remy-farm-coordinator"]
    assert "--kubernetes-design-jobs" in pod["containers"][0]["args"]
    assert pod["automountServiceAccountToken"] is True
    rights: dict[str, set[str]] = {}
    for rule in rendered.one("Role")["rules"]:
        for resource in rule["resources"]:
            rights.setdefault(resource, set()).update(rule["verbs"])
    assert rights["designjobs"] == {"list", "watch", "create", "patch", "delete"}
    assert rights["designjobs/status"] == {"patch"}
    assert rights["events"] == {"create", "patch"}
    # The coordinator writes results to ConfigMaps and reads files of DesignJobs from them.
    assert rights["configmaps"] == {"create", "get", "patch"}
    assert ("jobs" in rights) is (backend == "jobs")
    assert "secrets" not in rights
