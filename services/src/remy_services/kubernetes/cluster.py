"""A real cluster, by way of the Kubernetes API."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx2
from lightkube import ApiError, AsyncClient
from lightkube.core.exceptions import ConfigError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.types import CascadeType

from remy_services.kubernetes.contract import Change, Changed, Gone, Kind, Listed
from remy_services.kubernetes.errors import Refused, Unreachable
from remy_services.kubernetes.observed import COMPONENT, COMPONENT_LABEL, INSTANCE_LABEL
from remy_services.kubernetes.settings import Owner

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
            raise Unreachable(f"the Kubernetes API cannot be reached: {why}") from error
        except ConfigError as error:
            raise Unreachable(f"no Kubernetes cluster is configured: {error}") from error


def _as_ours(error: ApiError) -> Unreachable | Refused:
    code = error.status.code or 0
    words = error.status.message or str(error)
    if code == httpx2.codes.TOO_MANY_REQUESTS or code >= 500 or code in _STALE:
        return Unreachable(f"the Kubernetes API cannot serve now: {words}")
    return Refused(words)
