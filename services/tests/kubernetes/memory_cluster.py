"""In-memory Cluster with injectable errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from remy_services.kubernetes.cluster import Change, Changed, Gone, Kind, Listed
from remy_services.kubernetes.manifest import ClusterRefused, KubernetesError, Owner


class MemoryCluster:
    """Stores Jobs and notifies watches. See Cluster."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.error: KubernetesError | None = None
        self.refusal: ClusterRefused | None = None
        self.attempts = 0
        self._watches: list[asyncio.Queue[Change | KubernetesError]] = []

    def break_down(self, error: KubernetesError) -> None:
        """Fails all operations from now on, and ends running watches."""
        self.error = error
        for watch in self._watches:
            watch.put_nowait(error)

    async def watch(self, kind: Kind) -> AsyncIterator[Change]:
        self._check()
        jobs = tuple(self.jobs.values()) if kind == "Job" else ()
        queue: asyncio.Queue[Change | KubernetesError] = asyncio.Queue()
        self._watches.append(queue)
        yield Listed(kind, jobs)
        while True:
            change = await queue.get()
            if isinstance(change, KubernetesError):
                raise change
            if change.kind == kind:
                yield change

    async def apply(
        self, manifest: Mapping[str, Any], manager: str = "remy-farm-launcher"
    ) -> Mapping[str, Any]:
        self._check()
        self.attempts += 1
        if self.refusal is not None:
            raise self.refusal
        name = manifest["metadata"]["name"]
        job = {**manifest, "metadata": {**manifest["metadata"], "uid": name}, "status": {}}
        self.jobs[name] = job
        self._notify(Changed("Job", job))
        return job

    async def change(self, kind: Kind, name: str, patch: Mapping[str, Any]) -> Mapping[str, Any]:
        raise NotImplementedError

    async def remove(self, name: str, kind: Kind = "Job") -> None:
        self._check()
        job = self.jobs.pop(name, None)
        if job is not None:
            self._notify(Gone("Job", job))

    async def deployment(self, name: str) -> Owner:
        self._check()
        return Owner("apps/v1", "Deployment", name, "uid-of-" + name)

    async def config_map(self, name: str) -> Mapping[str, bytes] | None:
        raise NotImplementedError

    async def close(self) -> None:
        self._watches.clear()

    def _check(self) -> None:
        if self.error is not None:
            raise self.error

    def _notify(self, change: Change) -> None:
        for watch in self._watches:
            watch.put_nowait(change)
