"""A schema of the fields that the chart uses in a RayCluster of KubeRay (ray.io/v1, since 1.0).

It is not the operator's own definition. It has the types of the fields in use and which fields are
required, and rejects all other fields. Pod templates are checked with Kubernetes' own schema.
"""

from __future__ import annotations

from typing import Any

_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_COUNT = {"type": "integer", "minimum": 0}


def _closed(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


_HEAD = _closed(
    ["rayStartParams", "template"],
    serviceType={"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
    enableIngress={"type": "boolean"},
    rayStartParams=_TEXTS,
    template={"type": "object"},
)
_WORKERS = _closed(
    ["groupName", "minReplicas", "maxReplicas", "rayStartParams", "template"],
    groupName={"type": "string"},
    replicas=_COUNT,
    minReplicas=_COUNT,
    maxReplicas=_COUNT,
    numOfHosts=_COUNT,
    rayStartParams=_TEXTS,
    template={"type": "object"},
)
_SPEC = _closed(
    ["headGroupSpec"],
    headGroupSpec=_HEAD,
    workerGroupSpecs={"type": "array", "items": _WORKERS},
    rayVersion={"type": "string"},
    enableInTreeAutoscaling={"type": "boolean"},
    headServiceAnnotations=_TEXTS,
    suspend={"type": "boolean"},
)
RAY_CLUSTER = _closed(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "ray.io/v1"},
    kind={"const": "RayCluster"},
    metadata={"type": "object", "required": ["name"]},
    spec=_SPEC,
)


def pod_templates(cluster: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the cluster's pod templates as PodTemplate objects."""
    groups = [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]
    return [
        {
            "apiVersion": "v1",
            "kind": "PodTemplate",
            "metadata": {"name": "group"},
            "template": group["template"],
        }
        for group in groups
    ]
