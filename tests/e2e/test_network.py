"""Network policies allow only the intended connections, if the cluster enforces policies."""

from __future__ import annotations

import json
import os

import pytest

from tests.e2e.farm import FULL_NAME, Farm
from tests.e2e.settings import needs_cluster
from tests.waiting import wait_until

pytestmark = needs_cluster

_CONNECT = "import socket,sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"


def _reaches(farm: Farm, name: str, labels: dict[str, str], host: str, port: int) -> bool:
    """Whether a pod with these labels can open a connection."""
    deployment = farm.kubectl.objects("deployments", "app.kubernetes.io/component=coordinator")[0]
    coordinator = deployment["spec"]["template"]["spec"]
    container = coordinator["containers"][0]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "securityContext": coordinator["securityContext"],
            "tolerations": coordinator.get("tolerations", []),
            "containers": [
                {
                    "name": "probe",
                    "image": container["image"],
                    "imagePullPolicy": container["imagePullPolicy"],
                    "command": ["python3", "-c", _CONNECT, host, str(port)],
                    "securityContext": container["securityContext"],
                }
            ],
        },
    }
    farm.kubectl("apply", "-f", "-", stdin=json.dumps(pod))
    try:
        phase = wait_until(lambda: _end_of(farm, name), "the probe to end")
        return phase == "Succeeded"
    finally:
        farm.kubectl("delete", "pod", name, "--grace-period=0", "--force")


def _end_of(farm: Farm, pod: str) -> str:
    phase = farm.kubectl("get", "pod", pod, "-o", "jsonpath={.status.phase}")
    return phase if phase in ("Succeeded", "Failed") else ""


@pytest.mark.skipif(
    os.environ.get("REMY_FARM_E2E_POLICIES") != "enforced",
    reason="REMY_FARM_E2E_POLICIES does not say that this cluster enforces NetworkPolicies",
)
@pytest.mark.parametrize(("component", "port"), [("redis", 6379), ("coordinator", 7390)])
def test_pod_without_the_right_labels_cannot_connect(farm: Farm, component: str, port: int) -> None:
    host = f"{FULL_NAME}-{component}.{farm.namespace}.svc"
    assert not _reaches(farm, f"stranger-{component}", {}, host, port)


def test_pod_with_the_client_label_reaches_the_coordinator(farm: Farm) -> None:
    host = f"{FULL_NAME}-coordinator.{farm.namespace}.svc"
    assert _reaches(farm, "client", {"remy-farm/client": "true"}, host, 7390)
