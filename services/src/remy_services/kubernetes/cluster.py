"""The Kubernetes API: Jobs and Pods listed, watched, applied and removed."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import httpx2
from lightkube import ApiError, AsyncClient
from lightkube.core.exceptions import ConfigError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.types import CascadeType

from remy_services.kubernetes.manifest import ClusterRefused, ClusterUnreachable, Owner
from remy_services.kubernetes.observed import (
    COMPONENT,
    COMPONENT_LABEL,
    INSTANCE_LABEL,
    ObservedJob,
    ObservedPod,
    observed_job,
    observed_pod,
)

# What the launcher needs of a cluster: Jobs and Pods watched, Jobs applied and removed.


Kind = Literal["Job", "Pod"]


@dataclass(frozen=True)
class Listed:
    """All objects of a kind, as they are now."""

    kind: Kind
    objects: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Changed:
    """One object is new, or is not what it was."""

    kind: Kind
    object: Mapping[str, Any]


@dataclass(frozen=True)
class Gone:
    """One object was removed."""

    kind: Kind
    object: Mapping[str, Any]


Change = Listed | Changed | Gone


class Cluster(Protocol):
    """What the launcher needs of a cluster. All may raise ClusterUnreachable and ClusterRefused."""

    def watch(self, kind: Kind) -> AsyncIterator[Change]:
        """What there is, and then what changes, for as long as the API server tells."""

    async def apply(self, manifest: Mapping[str, Any]) -> None:
        """Makes the Job, or makes it so, by server-side apply."""

    async def remove(self, name: str) -> None:
        """Removes a Job and its pods; one that is gone already is no error."""

    async def deployment(self, name: str) -> Owner:
        """A Deployment, as an owner of Jobs."""

    async def close(self) -> None:
        """Frees what the client holds."""


# What the cluster holds, as far as the launcher has heard.


class Informer:
    """Jobs and Pods by their unique ids, kept up to date by what a watch tells."""

    def __init__(self) -> None:
        self._held: dict[Kind, dict[str, Mapping[str, Any]]] = {}

    @property
    def complete(self) -> bool:
        """Whether both kinds were listed: before, what is not seen may still be there."""
        return len(self._held) == 2

    @property
    def jobs(self) -> list[ObservedJob]:
        """All Jobs, by name."""
        found = map(observed_job, self._held.get("Job", {}).values())
        return sorted(found, key=lambda job: job.name)

    @property
    def pods(self) -> list[ObservedPod]:
        """All Pods, by name."""
        found = map(observed_pod, self._held.get("Pod", {}).values())
        return sorted(found, key=lambda pod: pod.name)

    def take(self, change: Change) -> None:
        """Something was listed, has changed, or is gone."""
        if isinstance(change, Listed):
            self._held[change.kind] = {_uid(each): each for each in change.objects}
        elif isinstance(change, Gone):
            self._held[change.kind].pop(_uid(change.object), None)
        else:
            self._held[change.kind][_uid(change.object)] = change.object


def _uid(each: Mapping[str, Any]) -> str:
    return str(each["metadata"]["uid"])


# A real cluster, by way of the Kubernetes API.


_FIELD_MANAGER: Final = "remy-farm-launcher"
#: The version watched from is too old, or was overtaken: what there is has to be listed anew.
_STALE: Final = (httpx2.codes.GONE, httpx2.codes.CONFLICT)
_RESOURCES: Final[dict[str, Any]] = {
    "Job": create_namespaced_resource("batch", "v1", "Job", "jobs"),
    "Pod": create_namespaced_resource("", "v1", "Pod", "pods"),
    "Deployment": create_namespaced_resource("apps", "v1", "Deployment", "deployments"),
}


class KubernetesCluster:
    """A namespace of a real cluster, seen through the labels of one farm. See Cluster.

    How to reach it comes from the pod's service account or from KUBECONFIG.
    """

    def __init__(self, instance: str, namespace: str | None = None) -> None:
        self._labels: dict[str, Any] = {INSTANCE_LABEL: instance, COMPONENT_LABEL: COMPONENT}
        self._namespace = namespace
        self._client: AsyncClient | None = None
        # It logs every request, and with it what the launcher logs better.
        logging.getLogger("httpx2").setLevel(logging.WARNING)

    async def watch(self, kind: Kind) -> AsyncIterator[Change]:
        resource = _RESOURCES[kind]
        async with self._calling() as client:
            listing = client.list(resource, labels=self._labels)
            objects = tuple([each async for each in listing])
            yield Listed(kind, objects)
            changes = client.watch(
                resource,
                labels=self._labels,
                resource_version=listing.resourceVersion,
            )
            async for operation, each in changes:
                yield Gone(kind, each) if operation == "DELETED" else Changed(kind, each)

    async def apply(self, manifest: Mapping[str, Any]) -> None:
        job = _RESOURCES["Job"](manifest)
        async with self._calling() as client:
            await client.apply(job, field_manager=_FIELD_MANAGER, force=True)

    async def remove(self, name: str) -> None:
        async with self._calling() as client:
            try:
                await client.delete(_RESOURCES["Job"], name, cascade=CascadeType.BACKGROUND)
            except ApiError as error:
                if error.status.code != httpx2.codes.NOT_FOUND:
                    raise

    async def deployment(self, name: str) -> Owner:
        async with self._calling() as client:
            found = await client.get(_RESOURCES["Deployment"], name)
        return Owner("apps/v1", "Deployment", name, found["metadata"]["uid"])

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @asynccontextmanager
    async def _calling(self) -> AsyncIterator[AsyncClient]:
        try:
            if self._client is None:
                self._client = AsyncClient(namespace=self._namespace)
            yield self._client
        except ApiError as error:
            raise _as_ours(error) from error
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            why = str(error) or type(error).__name__
            raise ClusterUnreachable(f"the Kubernetes API cannot be reached: {why}") from error
        except ConfigError as error:
            raise ClusterUnreachable(f"no Kubernetes cluster is configured: {error}") from error


def _as_ours(error: ApiError) -> ClusterUnreachable | ClusterRefused:
    code = error.status.code or 0
    words = error.status.message or str(error)
    if code == httpx2.codes.TOO_MANY_REQUESTS or code >= 500 or code in _STALE:
        return ClusterUnreachable(f"the Kubernetes API cannot serve now: {words}")
    return ClusterRefused(words)
