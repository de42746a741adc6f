"""Keeps the cluster's worker Jobs as the designs want them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import structlog

from remy_services.kubernetes import reconciliation
from remy_services.kubernetes.cluster import Cluster, Informer, Kind
from remy_services.kubernetes.manifest import (
    ClusterRefused,
    ClusterUnreachable,
    Design,
    KubernetesError,
    LauncherSettings,
    Owner,
    WorkersPhase,
)
from remy_services.kubernetes.observed import Past, PodPhaseCounts
from remy_services.kubernetes.reconciliation import Action, Apply, Backoff, Plan, reconcile

_log = structlog.get_logger(__name__)

#: How often the designs are looked at when nobody says that they changed.
_LOOK_SECONDS: Final = 2.0
#: Changes that come together are answered together.
_SETTLE_SECONDS: Final = 0.2
#: How long a refusal is remembered after it would have been tried again.
_REFUSAL_SECONDS: Final = 60.0
#: Between two tries to reach the API server, twice as long each time.
_RETRY_SECONDS: Final = 1.0
_MOST_RETRY_SECONDS: Final = 15.0


@dataclass(frozen=True)
class Report:
    """What there is to say of the workers of the running designs."""

    #: One sentence each.
    sentences: Mapping[str, str] = field(default_factory=dict)
    counted: Mapping[str, PodPhaseCounts] = field(default_factory=dict)
    #: Pods whose workers ended in themselves, and not with their nodes.
    crashed: frozenset[str] = frozenset()


class Launcher:
    """Runs until it is cancelled, whatever the cluster does. Everything happens in one event loop.

    `designs` is asked for all jobs that the coordinator knows, at least every two seconds; `tell`
    hears what there is to say, whenever it changes.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: LauncherSettings,
        designs: Callable[[], Iterable[Design]],
        tell: Callable[[Report], None],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._designs = designs
        self._tell = tell
        self._clock = clock
        self._informer = Informer()
        self._changed = asyncio.Event()
        self._trouble: dict[str, str] = {}
        self._refusals: dict[str, Backoff] = {}
        self._past: Mapping[str, Past] = {}
        self._told = Report()

    def look(self) -> None:
        """The designs have changed."""
        self._changed.set()

    async def run(self) -> None:
        """Keeps the Jobs; returns only by being cancelled."""
        try:
            owner = await self._find_owner()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep_up("Job"))
                group.create_task(self._keep_up("Pod"))
                group.create_task(self._work(owner))
        finally:
            await self._cluster.close()

    async def _find_owner(self) -> Owner | None:
        while self._settings.owner_deployment:
            try:
                return await self._cluster.deployment(self._settings.owner_deployment)
            except ClusterRefused as refusal:
                _log.warning("worker jobs have no owner", why=str(refusal))
                return None
            except ClusterUnreachable as trouble:
                self._say_unreachable(str(trouble))
                await asyncio.sleep(_RETRY_SECONDS)
        return None

    async def _keep_up(self, kind: Kind) -> None:
        wait = _RETRY_SECONDS
        while True:
            try:
                async for change in self._cluster.watch(kind):
                    self._informer.take(change)
                    self._trouble.pop(kind, None)
                    self._changed.set()
                    wait = _RETRY_SECONDS
            except KubernetesError as trouble:
                if self._trouble.get(kind) != str(trouble):
                    _log.warning("nothing is heard of worker jobs", kind=kind, why=str(trouble))
                self._trouble[kind] = str(trouble)
                self._changed.set()
                await asyncio.sleep(wait)
                wait = min(_MOST_RETRY_SECONDS, 2 * wait)

    async def _work(self, owner: Owner | None) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._changed.wait()
                await asyncio.sleep(_SETTLE_SECONDS)
            self._changed.clear()
            if self._trouble:
                self._say_unreachable(next(iter(self._trouble.values())))
            elif self._informer.complete:
                await self._step(owner)

    async def _step(self, owner: Owner | None) -> None:
        plan = reconcile(
            self._designs(),
            self._informer.jobs,
            self._informer.pods,
            self._settings,
            owner,
            self._past,
            self._clock(),
        )
        self._past = plan.past
        for action in plan.actions:
            await self._act(action)
        self._say(plan)

    async def _act(self, action: Action) -> None:
        before = self._refusals.get(action.job_id)
        if before is not None and self._clock() < before.until:
            return
        try:
            if isinstance(action, Apply):
                name = action.manifest["metadata"]["name"]
                spec = action.manifest["spec"]
                await self._cluster.apply(action.manifest)
                _log.info(
                    "a worker job is applied",
                    job=action.job_id,
                    name=name,
                    workers=spec["parallelism"],
                    suspended=spec.get("suspend", False),
                )
            else:
                await self._cluster.remove(action.name)
                _log.info("a worker job is removed", job=action.job_id, name=action.name)
            self._refusals.pop(action.job_id, None)
        except KubernetesError as trouble:
            refusal = Backoff.after(before, str(trouble), self._clock())
            self._refusals[action.job_id] = refusal
            if before is None or before.why != refusal.why:
                _log.warning("a worker job is refused", job=action.job_id, why=refusal.why)

    def _say(self, plan: Plan) -> None:
        said = {
            job_id: reconciliation.of_refusal(self._refusals[job_id].why)
            if job_id in self._refusals
            else sentence
            for job_id, sentence in plan.sentences.items()
        }
        stale = self._clock() - _REFUSAL_SECONDS
        self._refusals = {
            job_id: each for job_id, each in self._refusals.items() if each.until > stale
        }
        self._report(Report(said, plan.counted, plan.crashed))

    def _say_unreachable(self, why: str) -> None:
        sentence = reconciliation.of_unreachable(why)
        running = [each.job_id for each in self._designs() if each.phase is WorkersPhase.RUNNING]
        self._report(Report(dict.fromkeys(running, sentence)))

    def _report(self, report: Report) -> None:
        if report != self._told:
            self._told = report
            self._tell(report)
