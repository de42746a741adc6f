"""Every object of the chart against the schemas of the API that it is for."""

from __future__ import annotations

import json
from typing import Any

import kubernetes_validate
import pytest

from tests.chart.rendering import EVERYTHING, needs_helm, render
from tests.chart.test_chart import BACKENDS

pytestmark = needs_helm

#: The oldest that the chart says it runs on, and one of the newest.
VERSIONS = ("1.29", "1.34")
#: Groups whose objects others define.
FOREIGN = ("cert-manager.io", "monitoring.coreos.com", "ray.io")


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
