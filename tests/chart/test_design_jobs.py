"""DesignJobs in the chart: what they add, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.chart.rendering import CHART, needs_helm, objects_in, render

ON: dict[str, Any] = {"designJobs": {"enabled": True}}


@needs_helm
def test_they_are_off_unless_asked_for() -> None:
    rendered = render()
    assert not {"CustomResourceDefinition", "ClusterRole"} & rendered.kinds()
    arguments = rendered.pods()["Deployment/farm-remy-farm-coordinator"]["containers"][0]["args"]
    assert "--kubernetes-design-jobs" not in arguments


def test_an_api_server_takes_what_the_rules_of_the_definition_cost() -> None:
    """As it estimates them: with every list as long as it may be, 10 and 100 million at most."""
    (definition,) = objects_in((CHART / "files" / "crds" / "designjobs.yaml").read_text())
    (version,) = definition["spec"]["versions"]
    costs = list(_costs(version["schema"]["openAPIV3Schema"], 1))
    assert max(costs) <= 10_000_000
    assert sum(costs) <= 100_000_000


def _costs(schema: dict[str, Any], times: int) -> Iterator[int]:
    for rule in schema.get("x-kubernetes-validations", ()):
        # A conversion of a decimal's text and a comparison; of others, at least their look-ups.
        yield times * 3 * rule["rule"].count("self")
    for inner in schema.get("properties", {}).values():
        yield from _costs(inner, times)
    if "items" in schema:
        yield from _costs(schema["items"], times * schema.get("maxItems", 1_000_000))


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
    rights: dict[str, set[str]] = {}
    for rule in rendered.one("Role")["rules"]:
        for resource in rule["resources"]:
            rights.setdefault(resource, set()).update(rule["verbs"])
    assert rights["designjobs"] == {"list", "watch", "create", "patch", "delete"}
    assert rights["designjobs/status"] == {"patch"}
    assert rights["events"] == {"create", "patch"}
    # Results are written to them, and files of DesignJobs read from them.
    assert rights["configmaps"] == {"create", "get", "patch"}
    assert ("jobs" in rights) is (backend == "jobs")
    assert "secrets" not in rights
