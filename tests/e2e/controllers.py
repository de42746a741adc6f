"""Runs other projects' controllers beside the farm, as built by scripts/build_controllers."""

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
    """Returns a mark that skips a test if this controller was not built."""
    return pytest.mark.skipif(
        not (CONTROLLERS / name / "version").exists(),
        reason=f"scripts/build_controllers has built no {name} in {CONTROLLERS}",
    )


@contextmanager
def kuberay() -> Iterator[None]:
    """Runs KubeRay's operator within the context."""
    rendered = run(["kubectl", "kustomize", str(CONTROLLERS / "kuberay" / "manifests" / "default")])
    with _running("kuberay", "default", objects_in(rendered)):
        yield


@contextmanager
def kueue(objects: Sequence[dict[str, Any]]) -> Iterator[None]:
    """Runs Kueue within the context, with these queues and their related objects."""
    chart = str(CONTROLLERS / "kueue" / "manifests")
    namespace = "kueue-system"
    made = objects_in(run(["helm", "template", "kueue", chart, "-n", namespace]))
    # Kueue's visibility API is not needed, and an unavailable API service would block the deletion
    # of namespaces.
    made = [each for each in made if each["kind"] != "APIService"]
    for each in made:
        # Helm puts objects without a namespace into the release's namespace.
        if each["kind"] in ("Role", "RoleBinding"):
            each["metadata"].setdefault("namespace", namespace)
    with _running("kueue", namespace, made):
        try:
            # After its start Kueue creates the webhook's certificate.
            wait_until(lambda: _accepted(objects), "Kueue to take its queues", every_seconds=1.0)
            yield
        finally:
            # Kueue must still run, because it removes its own finalizers.
            _delete(objects)


@contextmanager
def _running(name: str, namespace: str, objects: list[dict[str, Any]]) -> Iterator[None]:
    (deployment,) = (each for each in objects if each["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    # The other containers are proxies of the manager's metrics.
    pod["containers"] = [each for each in pod["containers"] if each.get("command") == ["/manager"]]
    (manager,) = pod["containers"]
    registry = yaml.safe_load(values_file().read_text(encoding="utf-8"))["image"]["registry"]
    manager |= {
        "image": f"{registry}/remy-farm-{name}:dev",
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
    }
    # The image has only the program, without a directory for temporary files.
    pod.setdefault("volumes", []).append({"name": "tmp", "emptyDir": {}})
    manager.setdefault("volumeMounts", []).append({"name": "tmp", "mountPath": "/tmp"})
    if namespace != "default":
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        objects = [space, *objects]
    try:
        run(_APPLY, stdin=_text(objects))
        what = f"deployment/{deployment['metadata']['name']}"
        run(["kubectl", "-n", namespace, "rollout", "status", what, "--timeout=300s"], seconds=320)
        yield
    finally:
        # Webhooks are deleted first, because nothing answers them any more; then all other objects.
        _delete([each for each in objects if "Webhook" in each["kind"]])
        _delete([each for each in objects if "Webhook" not in each["kind"]])


def _accepted(objects: Sequence[dict[str, Any]]) -> bool:
    try:
        run(_APPLY, stdin=_text(objects))
    except AssertionError:
        return False
    return True


def _delete(objects: Sequence[dict[str, Any]]) -> None:
    command = ["kubectl", "delete", "--ignore-not-found", "--timeout=120s", "-f", "-"]
    run(command, stdin=_text(objects))


def _text(objects: Sequence[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
