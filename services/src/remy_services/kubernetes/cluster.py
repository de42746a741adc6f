"""Access to the Kubernetes API: list, watch, apply, patch and delete objects."""

from __future__ import annotations

import json
import os
import time
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from aiohttp import ClientError, ClientResponse, ClientTimeout
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config
from kubernetes.aio.dynamic import DynamicClient, Resource
from kubernetes.aio.dynamic.exceptions import NotFoundError

from remy_services.kubernetes.design_jobs import API_VERSION, KIND
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

Kind = Literal["Job", "Pod", "DesignJob"]


@dataclass(frozen=True)
class Listed:
    """Complete list of the objects of a kind."""

    kind: Kind
    objects: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Changed:
    """An object was added or modified."""

    kind: Kind
    object: Mapping[str, Any]


@dataclass(frozen=True)
class Gone:
    """An object was deleted."""

    kind: Kind
    object: Mapping[str, Any]


Change = Listed | Changed | Gone


_FIELD_MANAGER: Final = "remy-farm-launcher"


class Cluster(Protocol):
    """The cluster operations in use. All may raise ClusterUnreachable and ClusterRefused."""

    def watch(self, kind: Kind) -> AsyncIterator[Change]:
        """Yields a list of all objects, then changes forever. Lists may be repeated."""

    async def apply(
        self, manifest: Mapping[str, Any], manager: str = _FIELD_MANAGER
    ) -> Mapping[str, Any]:
        """Creates or updates an object by server-side apply, and returns it.

        The kind "KIND/status" applies the status subresource.
        """

    async def change(self, kind: Kind, name: str, patch: Mapping[str, Any]) -> Mapping[str, Any]:
        """Applies a merge patch to an object, and returns it."""

    async def remove(self, name: str, kind: Kind = "Job") -> None:
        """Deletes an object and its dependents. A missing object is not an error."""

    async def deployment(self, name: str) -> Owner:
        """Returns a Deployment as an owner reference for Jobs."""

    async def config_map(self, name: str) -> Mapping[str, bytes] | None:
        """Returns the contents of a ConfigMap by key, or None if it does not exist."""

    async def close(self) -> None:
        """Closes the client's connections."""


class Informer:
    """Cache of observed Jobs and Pods by uid, updated by watches."""

    def __init__(self) -> None:
        self._objects: dict[Kind, dict[str, Mapping[str, Any]]] = {}

    @property
    def complete(self) -> bool:
        """Whether both kinds have been listed. Before that, missing objects may still exist."""
        return len(self._objects) == 2

    @property
    def jobs(self) -> list[ObservedJob]:
        """All Jobs, by name."""
        found = map(observed_job, self._objects.get("Job", {}).values())
        return sorted(found, key=lambda job: job.name)

    @property
    def pods(self) -> list[ObservedPod]:
        """All Pods, by name."""
        found = map(observed_pod, self._objects.get("Pod", {}).values())
        return sorted(found, key=lambda pod: pod.name)

    def update(self, change: Change) -> None:
        """Applies a change from a watch."""
        if isinstance(change, Listed):
            self._objects[change.kind] = {_uid(each): each for each in change.objects}
        elif isinstance(change, Gone):
            self._objects[change.kind].pop(_uid(change.object), None)
        else:
            self._objects[change.kind][_uid(change.object)] = change.object


def _uid(each: Mapping[str, Any]) -> str:
    return str(each["metadata"]["uid"])


_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
#: API paths. Typed models and discovery would add seconds and memory to each start.
_RESOURCES: Final = {
    "Job": Resource("apis", "batch", "v1", "Job", True, name="jobs"),
    "Pod": Resource("api", None, "v1", "Pod", True, name="pods"),
    "Deployment": Resource("apis", "apps", "v1", "Deployment", True, name="deployments"),
    "ConfigMap": Resource("api", None, "v1", "ConfigMap", True, name="configmaps"),
    "Event": Resource("api", None, "v1", "Event", True, name="events"),
    "DesignJob": Resource("apis", *API_VERSION.split("/"), KIND, True, name="designjobs"),
}
#: Requested duration of a watch, which is then resumed at the same resource version.
_WATCH_SECONDS: Final = 300
#: Extra time after which an unfinished watch counts as a dead connection.
_GRACE_SECONDS: Final = 15.0
#: Interval between complete lists, in case a change was lost.
_RESYNC_SECONDS: Final = 1800.0
#: A watch without events that ends sooner than this raises an error instead of being resumed in a
#: loop.
_SHORTEST_SECONDS: Final = 1.0
_CALL_TIMEOUT: Final = ClientTimeout(total=30.0)
#: Retryable statuses. After UNAUTHORIZED the credentials are reloaded.
_RETRYABLE: Final = frozenset(
    {HTTPStatus.UNAUTHORIZED, HTTPStatus.CONFLICT, HTTPStatus.GONE, HTTPStatus.TOO_MANY_REQUESTS}
)


class _Expired(Exception):
    """The resource version from which a watch should resume is no longer available."""


class KubernetesCluster:
    """A namespace of a real cluster. See Cluster.

    Watches only objects with the labels of the farm `instance`, or all objects if it is None. The
    connection comes from KUBECONFIG, or from the pod's service account.
    """

    def __init__(self, instance: str | None, namespace: str | None = None) -> None:
        labels = f"{INSTANCE_LABEL}={instance},{COMPONENT_LABEL}={COMPONENT}"
        self._selector = None if instance is None else labels
        self._namespace = namespace
        self._client: ApiClient | None = None

    async def watch(self, kind: Kind) -> AsyncIterator[Change]:
        while True:
            listing = await self._call("get", kind, label_selector=self._selector)
            version: str = listing["metadata"]["resourceVersion"]
            yield Listed(kind, tuple(listing["items"]))
            resync_at = time.monotonic() + _RESYNC_SECONDS
            with suppress(_Expired):
                while (began := time.monotonic()) < resync_at:
                    before = version
                    async for event in self._events(kind, version):
                        version = event["object"]["metadata"]["resourceVersion"]
                        if event["type"] != "BOOKMARK":
                            change = Gone if event["type"] == "DELETED" else Changed
                            yield change(kind, event["object"])
                    if version == before and time.monotonic() < began + _SHORTEST_SECONDS:
                        raise ClusterUnreachable("the Kubernetes API ends watches immediately")

    async def apply(
        self, manifest: Mapping[str, Any], manager: str = _FIELD_MANAGER
    ) -> Mapping[str, Any]:
        kind, slash, part = str(manifest["kind"]).partition("/")
        applied: Mapping[str, Any] = await self._call(
            "server_side_apply",
            kind,
            body={**manifest, "kind": kind},
            name=manifest["metadata"]["name"] + slash + part,
            field_manager=manager,
            force_conflicts=True,
        )
        return applied

    async def change(self, kind: Kind, name: str, patch: Mapping[str, Any]) -> Mapping[str, Any]:
        merge = "application/merge-patch+json"
        changed: Mapping[str, Any] = await self._call(
            "patch", kind, name=name, body=patch, content_type=merge
        )
        return changed

    async def remove(self, name: str, kind: Kind = "Job") -> None:
        try:
            await self._call("delete", kind, name=name, propagation_policy="Background")
        except ClusterRefused as refusal:
            if not isinstance(refusal.__cause__, NotFoundError):
                raise

    async def deployment(self, name: str) -> Owner:
        found = await self._call("get", "Deployment", name=name)
        return Owner("apps/v1", "Deployment", name, found["metadata"]["uid"])

    async def config_map(self, name: str) -> Mapping[str, bytes] | None:
        try:
            found = await self._call("get", "ConfigMap", name=name)
        except ClusterRefused as refusal:
            if not isinstance(refusal.__cause__, NotFoundError):
                raise
            return None
        texts, binaries = (found.get(each) or {} for each in ("data", "binaryData"))
        return {
            **{key: text.encode() for key, text in texts.items()},
            **{key: b64decode(text) for key, text in binaries.items()},
        }

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _events(self, kind: Kind, version: str) -> AsyncIterator[Mapping[str, Any]]:
        """Yields watch events after a resource version until the watch ends. Raises _Expired."""
        async with self._translating_errors() as client:
            try:
                answer: ClientResponse = await client.get(
                    _RESOURCES[kind],
                    namespace=self._namespace,
                    label_selector=self._selector,
                    resource_version=version,
                    timeout_seconds=_WATCH_SECONDS,
                    watch="true",
                    query_params=[("allowWatchBookmarks", "true")],
                    serialize=False,
                    _request_timeout=ClientTimeout(total=_WATCH_SECONDS + _GRACE_SECONDS),
                )
                try:
                    while line := await answer.content.readline():
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            status = event["object"]
                            raise ApiException(status.get("code"), body=json.dumps(status))
                        yield event
                finally:
                    # Aborts the connection, because a TLS shutdown could outlive the event loop.
                    if answer.connection is not None and answer.connection.transport is not None:
                        answer.connection.transport.abort()
                    answer.close()
            except ApiException as error:
                if error.status == HTTPStatus.GONE:
                    raise _Expired from error
                raise

    async def _call(self, verb: str, kind: str, **parameters: Any) -> Any:
        async with self._translating_errors() as client:
            return await getattr(client, verb)(
                _RESOURCES[kind],
                namespace=self._namespace,
                serializer=lambda _, content: content,
                _request_timeout=_CALL_TIMEOUT,
                **parameters,
            )

    @asynccontextmanager
    async def _translating_errors(self) -> AsyncIterator[DynamicClient]:
        try:
            yield DynamicClient(await self._connect())
        except ApiException as error:
            if error.status == HTTPStatus.UNAUTHORIZED:
                # Expired credentials are reloaded by the next call.
                await self.close()
            raise _translate(error) from error
        except (ClientError, OSError, ValueError) as error:
            why = str(error) or type(error).__name__
            raise ClusterUnreachable(f"the Kubernetes API cannot be reached: {why}") from error
        except ConfigException as error:
            raise ClusterUnreachable(f"no Kubernetes cluster is configured: {error}") from error

    async def _connect(self) -> ApiClient:
        if self._client is None:
            configuration, namespace = await _configuration()
            if self._client is not None:  # A concurrent call has connected.
                return self._client
            self._namespace = self._namespace or namespace
            self._client = ApiClient(configuration)
            self._client.user_agent = _FIELD_MANAGER
        return self._client


async def _configuration() -> tuple[Configuration, str]:
    """Returns the client configuration and the namespace."""
    configuration = Configuration()
    file = os.environ.get("KUBECONFIG")
    if not file and (_ACCOUNT / "namespace").exists():
        load_incluster_config(configuration)
        return configuration, (_ACCOUNT / "namespace").read_text().strip()
    loader = await load_kube_config(file or None, client_configuration=configuration)
    return configuration, loader.current_context["context"].get("namespace") or "default"


def _translate(error: ApiException) -> ClusterUnreachable | ClusterRefused:
    code = error.status or 0
    try:
        message = json.loads(error.body or "")["message"]
    except (ValueError, LookupError, TypeError):
        message = error.reason or str(error)
    if code in _RETRYABLE or code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ClusterUnreachable(f"the Kubernetes API cannot serve now: {message}")
    return ClusterRefused(message)
