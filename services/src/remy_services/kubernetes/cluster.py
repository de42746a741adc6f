"""The Kubernetes API: objects listed, watched, applied, changed and removed."""

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


_FIELD_MANAGER: Final = "remy-farm-launcher"


class Cluster(Protocol):
    """What is needed of a cluster. All may raise ClusterUnreachable and ClusterRefused."""

    def watch(self, kind: Kind) -> AsyncIterator[Change]:
        """What there is, and then what changes, without end; what there is may be told again."""

    async def apply(
        self, manifest: Mapping[str, Any], manager: str = _FIELD_MANAGER
    ) -> Mapping[str, Any]:
        """Makes the object, or makes it so, by server-side apply; what it is then. A kind that ends
        in "/status" is the status of that kind."""

    async def change(self, kind: Kind, name: str, patch: Mapping[str, Any]) -> Mapping[str, Any]:
        """Merges the patch into an object; what it is then."""

    async def remove(self, name: str, kind: Kind = "Job") -> None:
        """Removes an object and what it owns; one that is gone already is no error."""

    async def deployment(self, name: str) -> Owner:
        """A Deployment, as an owner of Jobs."""

    async def config_map(self, name: str) -> Mapping[str, bytes] | None:
        """What a ConfigMap holds, by key; None if there is none."""

    async def close(self) -> None:
        """Frees what the client holds."""


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


_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
#: Paths alone: typed models and discovery would cost each start seconds and memory.
_RESOURCES: Final = {
    "Job": Resource("apis", "batch", "v1", "Job", True, name="jobs"),
    "Pod": Resource("api", None, "v1", "Pod", True, name="pods"),
    "Deployment": Resource("apis", "apps", "v1", "Deployment", True, name="deployments"),
    "ConfigMap": Resource("api", None, "v1", "ConfigMap", True, name="configmaps"),
    "Event": Resource("api", None, "v1", "Event", True, name="events"),
    "DesignJob": Resource("apis", *API_VERSION.split("/"), KIND, True, name="designjobs"),
}
#: How long the API server is asked to hold a watch, which is then resumed where it ended.
_WATCH_SECONDS: Final = 300
#: How much later than asked a watch may end before its connection counts as dead.
_GRACE_SECONDS: Final = 15.0
#: What there is is listed anew after so long, should a change have been lost on the way.
_RESYNC_SECONDS: Final = 1800.0
#: A watch that ends sooner, and without a word, is not resumed in a tight loop.
_SHORTEST_SECONDS: Final = 1.0
_CALL_TIMEOUT: Final = ClientTimeout(total=30.0)
#: What may succeed when it is tried again: credentials that ran out are read anew, conflicts pass.
_PASSING: Final = frozenset(
    {HTTPStatus.UNAUTHORIZED, HTTPStatus.CONFLICT, HTTPStatus.GONE, HTTPStatus.TOO_MANY_REQUESTS}
)


class _Expired(Exception):
    """The API server has forgotten the version that a watch was to go on from."""


class KubernetesCluster:
    """A namespace of a real cluster, seen through the labels of one farm's workers, or whole if
    `instance` is None. See Cluster.

    How to reach it comes from KUBECONFIG, or else from the pod's service account.
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
                        raise ClusterUnreachable("the Kubernetes API ends every watch at once")

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
        """What happens after that version, until the watch ends. Raises _Expired."""
        async with self._calling() as client:
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
                    # TLS would say goodbye behind our back, and outlive the event loop.
                    if answer.connection is not None and answer.connection.transport is not None:
                        answer.connection.transport.abort()
                    answer.close()
            except ApiException as error:
                if error.status == HTTPStatus.GONE:
                    raise _Expired from error
                raise

    async def _call(self, verb: str, kind: str, **parameters: Any) -> Any:
        async with self._calling() as client:
            return await getattr(client, verb)(
                _RESOURCES[kind],
                namespace=self._namespace,
                serializer=lambda _, content: content,
                _request_timeout=_CALL_TIMEOUT,
                **parameters,
            )

    @asynccontextmanager
    async def _calling(self) -> AsyncIterator[DynamicClient]:
        try:
            yield DynamicClient(await self._connected())
        except ApiException as error:
            if error.status == HTTPStatus.UNAUTHORIZED:
                # The credentials may have run out: the next call reads them anew.
                await self.close()
            raise _as_ours(error) from error
        except (ClientError, OSError, ValueError) as error:
            why = str(error) or type(error).__name__
            raise ClusterUnreachable(f"the Kubernetes API cannot be reached: {why}") from error
        except ConfigException as error:
            raise ClusterUnreachable(f"no Kubernetes cluster is configured: {error}") from error

    async def _connected(self) -> ApiClient:
        if self._client is None:
            configuration, namespace = await _configuration()
            if self._client is not None:  # Another call was faster.
                return self._client
            self._namespace = self._namespace or namespace
            self._client = ApiClient(configuration)
            self._client.user_agent = _FIELD_MANAGER
        return self._client


async def _configuration() -> tuple[Configuration, str]:
    """How to reach the cluster, and the namespace to work in."""
    configuration = Configuration()
    file = os.environ.get("KUBECONFIG")
    if not file and (_ACCOUNT / "namespace").exists():
        load_incluster_config(configuration)
        return configuration, (_ACCOUNT / "namespace").read_text().strip()
    loader = await load_kube_config(file or None, client_configuration=configuration)
    return configuration, loader.current_context["context"].get("namespace") or "default"


def _as_ours(error: ApiException) -> ClusterUnreachable | ClusterRefused:
    code = error.status or 0
    try:
        words = json.loads(error.body or "")["message"]
    except (ValueError, LookupError, TypeError):
        words = error.reason or str(error)
    if code in _PASSING or code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return ClusterUnreachable(f"the Kubernetes API cannot serve now: {words}")
    return ClusterRefused(words)
