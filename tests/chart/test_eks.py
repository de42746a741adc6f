"""The pods of the chart with the values of `deploy/eks` fit on its node pools.

A model of the scheduler checks labels, taints, and the CPUs that EKS leaves to pods. The test does
not contact AWS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml

from benchmarks.programs import ROOT
from tests.chart.rendering import needs_helm, render

pytestmark = needs_helm

FOLDER = ROOT / "deploy" / "eks"
VALUES = {
    "EBS": ("values.yaml",),
    "ElastiCache": ("values.yaml", "values-elasticache.yaml"),
}
#: CPUs by instance size, in EC2's current families.
CPUS = {"large": 2, "xlarge": 4, "2xlarge": 8, "4xlarge": 16, "8xlarge": 32}
#: CPUs that aws-node, kube-proxy, the EBS driver and one or two agents request on each node.
DAEMON_CPUS = 0.25


@dataclass(frozen=True)
class Node:
    """An empty node, as the scheduler sees it."""

    labels: Mapping[str, str]
    cpus: int
    taints: tuple[Mapping[str, str], ...] = ()

    @property
    def allocatable(self) -> float:
        """CPUs that pods may request; EKS reserves a decreasing part of each further CPU."""
        kept = sum((0.06, 0.01, 0.005, 0.005)[: self.cpus]) + 0.0025 * max(0, self.cpus - 4)
        return self.cpus - kept - DAEMON_CPUS

    def takes(self, pod: Mapping[str, Any]) -> bool:
        """Whether the node's labels and taints allow the pod."""
        wanted = (pod.get("nodeSelector") or {}).items()
        tolerated = pod.get("tolerations") or []
        return wanted <= self.labels.items() and all(
            any(_tolerates(each, taint) for each in tolerated) for taint in self.taints
        )


@dataclass
class Pools:
    """The nodes of `cluster.yaml`, and the nodes that `karpenter.yaml` lets Karpenter start."""

    steady: list[Node] = field(default_factory=list)
    spot: list[Node] = field(default_factory=list)


def pools() -> Pools:
    """Returns one node per instance type of the permanent group and one per size of spot nodes."""
    (group,) = read("cluster.yaml")[0]["managedNodeGroups"]
    found = Pools()
    for kind in group["instanceTypes"]:
        labels = {"kubernetes.io/arch": architecture(kind), **group["labels"]}
        found.steady.append(Node(labels, CPUS[kind.partition(".")[2]]))
    template = read("karpenter.yaml")[1]["spec"]["template"]
    allowed = {each["key"]: each["values"] for each in template["spec"]["requirements"]}
    for cpus in allowed["karpenter.k8s.aws/instance-cpu"]:
        for architectures in allowed["kubernetes.io/arch"]:
            labels = {"kubernetes.io/arch": architectures, **template["metadata"]["labels"]}
            found.spot.append(Node(labels, int(cpus), tuple(template["spec"]["taints"])))
    return found


def architecture(instance_type: str) -> str:
    """Returns the architecture of an instance type; a g after the generation means Graviton."""
    family = re.fullmatch(r"[a-z]+[0-9]+([a-z-]*)\.[a-z0-9]+", instance_type)
    assert family is not None, instance_type
    return "arm64" if "g" in family.group(1) else "amd64"


def read(name: str) -> list[Any]:
    return list(yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")))


def _tolerates(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    return toleration.get("key") in (None, taint["key"]) and (
        toleration.get("operator") == "Exists" or toleration.get("value") == taint.get("value")
    )


def cpus_of(pods: Iterable[Mapping[str, Any]]) -> float:
    texts = [
        str(container["resources"]["requests"]["cpu"])
        for pod in pods
        for container in pod["containers"]
    ]
    return sum(float(text.rstrip("m")) / (1000 if text[-1] == "m" else 1) for text in texts)


def rendered(kind: str) -> Any:
    flags = [f"--values={FOLDER / name}" for name in VALUES[kind]]
    return render({}, *flags)


@pytest.mark.parametrize("kind", VALUES)
def test_every_pod_finds_a_node(kind: str) -> None:
    found = pools()
    pods = rendered(kind).pods()
    worker = pods.pop("Job/launcher")
    for name, pod in pods.items():
        fits = [node for node in found.steady if node.takes(pod)]
        assert len(fits) == len(found.steady), f"{name}: not all nodes of the steady group will do"
        assert not any(node.takes(pod) for node in found.spot), name
    # One of the two nodes must be able to run all pods if the other one is lost.
    assert cpus_of(pods.values()) <= min(node.allocatable for node in found.steady)
    assert not any(node.takes(worker) for node in found.steady)
    for node in found.spot:
        assert node.takes(worker), "a worker's labels or taints"
        assert cpus_of([worker]) <= node.allocatable, f"a worker on a node of {node.cpus} CPUs"


def test_workers_fill_a_node() -> None:
    asked = cpus_of([rendered("EBS").pods()["Job/launcher"]])
    for node in pools().spot:
        workers = int(node.allocatable // asked)
        assert workers * asked >= 0.8 * node.cpus, f"{workers} workers on {node.cpus} CPUs"


def test_pod_identity_belongs_to_the_coordinator_s_service_account() -> None:
    (association,) = read("cluster.yaml")[0]["iam"]["podIdentityAssociations"]
    account = rendered("EBS").pods()["Deployment/farm-remy-farm-coordinator"]["serviceAccountName"]
    assert (association["namespace"], association["serviceAccountName"]) == ("farm", account)


@pytest.mark.parametrize(
    ("instance_type", "expected"),
    [
        ("m7g.large", "arm64"),
        ("c7gn.xlarge", "arm64"),
        ("m7i.large", "amd64"),
        ("c7i-flex.large", "amd64"),
    ],
)
def test_architecture_of_an_instance_type(instance_type: str, expected: str) -> None:
    assert architecture(instance_type) == expected
