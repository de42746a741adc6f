"""DesignJobs in the chart: what they add, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chart.rendering import needs_helm, render

ON: dict[str, Any] = {"designJobs": {"enabled": True}}


@needs_helm
def test_they_are_off_unless_asked_for() -> None:
    rendered = render()
    assert not {"CustomResourceDefinition", "ClusterRole"} & rendered.kinds()
    arguments = rendered.pods()["Deployment/farm-remy-farm-coordinator"]["containers"][0]["args"]
    assert "--kubernetes-design-jobs" not in arguments


@needs_helm
def test_the_definition_outlives_the_release() -> None:
    definition = render(ON).one("CustomResourceDefinition")
    assert definition["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    there = render({"designJobs": {"enabled": True, "installCrd": False}})
    assert "CustomResourceDefinition" not in there.kinds()


@needs_helm
@pytest.mark.parametrize("backend", ["jobs", "deployment"])
def test_the_coordinator_may_do_no_more_than_it_does(backend: str) -> None:
    rendered = render({**ON, "workers": {"backend": backend}})
    pod = rendered.pods()["Deployment/farm-remy-farm-coordinator"]
    assert "--kubernetes-design-jobs" in pod["containers"][0]["args"]
    assert pod["automountServiceAccountToken"] is True
    rights = {
        resource: set(rule["verbs"])
        for rule in rendered.one("Role")["rules"]
        for resource in rule["resources"]
    }
    assert rights["designjobs"] == {"list", "watch", "create", "patch", "delete"}
    assert rights["designjobs/status"] == {"patch"}
    assert rights["configmaps"] == rights["events"] == {"create", "patch"}
    assert ("jobs" in rights) is (backend == "jobs")
    assert "secrets" not in rights
