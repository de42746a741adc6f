"""Controllers of others beside the farm, run by their own manifests; scripts/build_controllers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import yaml

from tests.chart.rendering import objects_in
from tests.e2e.kubectl import run
from tests.e2e.settings import CONTROLLERS, values_file
from tests.waiting import wait_until

_APPLY = ["kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-"]


def needs(name: str) -> pytest.MarkDecorator:
    """Skips where this controller was not built."""
    return pytest.mark.skipif(
        not (CONTROLLERS / name / "version").exists(),
        reason=f"scripts/build_controllers has built no {name} in {CONTROLLERS}",
    )


@contextmanager
def kuberay() -> Iterator[None]:
    """KubeRay's operator looks after RayClusters."""
    rendered = run(["kubectl", "kustomize", str(CONTROLLERS / "kuberay" / "manifests" / "default")])
    with _running("kuberay", "default", objects_in(rendered)):
        yield


@contextmanager
def kueue(objects: Sequence[dict[str, Any]]) -> Iterator[None]:
    """Kueue admits Jobs, with these queues and what belongs to them."""
    chart = str(CONTROLLERS / "kueue" / "manifests")
    namespace = "kueue-system"
    made = objects_in(run(["helm", "template", "kueue", chart, "-n", namespace]))
    # Its view of queues is not needed, and an API that is gone keeps namespaces from being removed.
    made = [each for each in made if each["kind"] != "APIService"]
    for each in made:
        # Helm puts what names no namespace into the release's own.
        if each["kind"] in ("Role", "RoleBinding"):
            each["metadata"].setdefault("namespace", namespace)
    with _running("kueue", namespace, made):
        try:
            # The webhook's certificate is made, and handed to the API server, after the start.
            wait_until(lambda: _accepted(objects), "Kueue to take its queues", every_seconds=1.0)
            yield
        finally:
            # Kueue itself takes its finalizers off them.
            _delete(objects)


@contextmanager
def _running(name: str, namespace: str, objects: list[dict[str, Any]]) -> Iterator[None]:
    (deployment,) = (each for each in objects if each["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    # Beside the manager, there are only proxies of its metrics.
    pod["containers"] = [each for each in pod["containers"] if each.get("command") == ["/manager"]]
    (manager,) = pod["containers"]
    registry = yaml.safe_load(values_file().read_text(encoding="utf-8"))["image"]["registry"]
    manager |= {
        "image": f"{registry}/remy-farm-{name}:dev",
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
    }
    # Its image has nothing but the program, not even a folder for what is temporary.
    pod.setdefault("volumes", []).append({"name": "tmp", "emptyDir": {}})
    manager.setdefault("volumeMounts", []).append({"name": "tmp", "mountPath": "/tmp"})
    if namespace != "default":
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        objects = [space, *objects]
    try:
        run(_APPLY, given=_text(objects))
        what = f"deployment/{deployment['metadata']['name']}"
        run(["kubectl", "-n", namespace, "rollout", "status", what, "--timeout=300s"], seconds=320)
        yield
    finally:
        # Webhooks first: nobody answers them any more. Then what else the cluster has of it.
        _delete([each for each in objects if "Webhook" in each["kind"]])
        _delete([each for each in objects if "Webhook" not in each["kind"]])


def _accepted(objects: Sequence[dict[str, Any]]) -> bool:
    try:
        run(_APPLY, given=_text(objects))
    except AssertionError:
        return False
    return True


def _delete(objects: Sequence[dict[str, Any]]) -> None:
    command = ["kubectl", "delete", "--ignore-not-found", "--timeout=120s", "-f", "-"]
    run(command, given=_text(objects))


def _text(objects: Sequence[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
