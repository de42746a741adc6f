"""Launcher: creates, scales and removes worker Jobs to match the running designs."""

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

#: Interval between reconciliations without change notifications.
_LOOK_SECONDS: Final = 2.0
#: Delay to batch changes that arrive together.
_SETTLE_SECONDS: Final = 0.2
#: Time for which a refusal is remembered after its retry time.
_REFUSAL_SECONDS: Final = 60.0
#: Backoff of connections to the API server; doubles up to the maximum.
_RETRY_SECONDS: Final = 1.0
_MAX_RETRY_SECONDS: Final = 15.0


@dataclass(frozen=True)
class Report:
    """Status of the workers of the running designs."""

    #: Status sentence by job id.
    sentences: Mapping[str, str] = field(default_factory=dict)
    counted: Mapping[str, PodPhaseCounts] = field(default_factory=dict)
    #: Names of pods whose worker crashed, as opposed to its node.
    crashed: frozenset[str] = frozenset()


class Launcher:
    """Reconciles worker Jobs until it is cancelled, across errors of the cluster.

    `designs` returns all jobs of the coordinator, and is called at least every two seconds;
    `on_report` gets each changed report. Everything runs in one event loop.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: LauncherSettings,
        designs: Callable[[], Iterable[Design]],
        on_report: Callable[[Report], None],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._designs = designs
        self._on_report = on_report
        self._clock = clock
        self._informer = Informer()
        self._changed = asyncio.Event()
        self._watch_errors: dict[str, str] = {}
        self._refusals: dict[str, Backoff] = {}
        self._past: Mapping[str, Past] = {}
        self._last_report = Report()

    def notify_changed(self) -> None:
        """Triggers a reconciliation because the designs have changed."""
        self._changed.set()

    async def run(self) -> None:
        """Runs the reconciliation loop until cancelled."""
        try:
            owner = await self._find_owner()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._watch("Job"))
                group.create_task(self._watch("Pod"))
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
                self._report_unreachable(str(trouble))
                await asyncio.sleep(_RETRY_SECONDS)
        return None

    async def _watch(self, kind: Kind) -> None:
        wait = _RETRY_SECONDS
        while True:
            try:
                async for change in self._cluster.watch(kind):
                    self._informer.update(change)
                    self._watch_errors.pop(kind, None)
                    self._changed.set()
                    wait = _RETRY_SECONDS
            except KubernetesError as trouble:
                if self._watch_errors.get(kind) != str(trouble):
                    _log.warning("the watch of worker jobs failed", kind=kind, why=str(trouble))
                self._watch_errors[kind] = str(trouble)
                self._changed.set()
                await asyncio.sleep(wait)
                wait = min(_MAX_RETRY_SECONDS, 2 * wait)

    async def _work(self, owner: Owner | None) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._changed.wait()
                await asyncio.sleep(_SETTLE_SECONDS)
            self._changed.clear()
            if self._watch_errors:
                self._report_unreachable(next(iter(self._watch_errors.values())))
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
        self._report_plan(plan)

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
                    "applied a worker job",
                    job=action.job_id,
                    name=name,
                    workers=spec["parallelism"],
                    suspended=spec.get("suspend", False),
                )
            else:
                await self._cluster.remove(action.name)
                _log.info("removed a worker job", job=action.job_id, name=action.name)
            self._refusals.pop(action.job_id, None)
        except KubernetesError as trouble:
            refusal = Backoff.after(before, str(trouble), self._clock())
            self._refusals[action.job_id] = refusal
            if before is None or before.why != refusal.why:
                _log.warning("a worker job was refused", job=action.job_id, why=refusal.why)

    def _report_plan(self, plan: Plan) -> None:
        sentences = {
            job_id: reconciliation.describe_refusal(self._refusals[job_id].why)
            if job_id in self._refusals
            else sentence
            for job_id, sentence in plan.sentences.items()
        }
        stale = self._clock() - _REFUSAL_SECONDS
        self._refusals = {
            job_id: each for job_id, each in self._refusals.items() if each.until > stale
        }
        self._report(Report(sentences, plan.counted, plan.crashed))

    def _report_unreachable(self, why: str) -> None:
        sentence = reconciliation.describe_unreachable(why)
        running = [each.job_id for each in self._designs() if each.phase is WorkersPhase.RUNNING]
        self._report(Report(dict.fromkeys(running, sentence)))

    def _report(self, report: Report) -> None:
        if report != self._last_report:
            self._last_report = report
            self._on_report(report)
