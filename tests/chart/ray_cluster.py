"""What KubeRay's definition of a RayCluster (ray.io/v1, since 1.0) asks of the fields in use.

Not the definition itself, which is the operator's: the types, what is required, and that no other
field is known. A pod's template is Kubernetes' own, and held against its schema.
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
    """The templates of its pods, each as an object of Kubernetes' own."""
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
