"""Workers that Kubernetes runs for the jobs of a farm, one Kubernetes Job for each."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator
from pathlib import Path

import structlog

from remy_farm.evaluation.dispatcher import Dispatcher
from remy_farm.evaluation.interface import SharedEvaluator
from remy_proto.v1 import spec_pb2
from remy_rpc.settings import SettingsError
from remy_services.coordinator.farm import Farm
from remy_services.coordinator.maintenance import BackgroundTask
from remy_services.jobs.states import FINAL
from remy_services.kubernetes.cluster import KubernetesCluster
from remy_services.kubernetes.launcher import Launcher, Report
from remy_services.kubernetes.manifest import (
    ConfigurationError,
    Design,
    LauncherSettings,
    beyond_limits,
    design_of,
    read_settings,
)
from remy_services.telemetry.samples import WorkerPods

_log = structlog.get_logger()

#: A Kubernetes Job that ended removes itself after its own time; then its design may be forgotten.
_DEFAULT_TTL_SECONDS = 3600.0
_RESTART_SECONDS = 5.0
#: How often it is measured how busy workers are.
_MEASURED_SECONDS = 15.0


class WorkerJobs(BackgroundTask):
    """Keeps a launcher at work. To be used in the farm's event loop.

    What is closed leaves the workers that there are to the next coordinator.
    """

    def __init__(self, farm: Farm, settings_path: Path, evaluator: SharedEvaluator) -> None:
        """Raises SettingsError."""
        try:
            settings = read_settings(settings_path)
        except ConfigurationError as error:
            raise SettingsError(str(error)) from error
        self._farm = farm
        self._settings = settings
        self._keeps_seconds = settings.finish_seconds + _ttl_seconds(settings)
        farm.objection = self._objection
        self._evaluator = evaluator
        # By job: when it was last measured for how long its workers had all been busy, that, and
        # for how much of the time before.
        self._busy: dict[str, tuple[float, float, float | None]] = {}
        self._hear(Report())

    async def _run(self) -> None:
        while True:
            cluster = KubernetesCluster(self._settings.instance)
            launcher = Launcher(cluster, self._settings, self._designs, self._hear)
            try:
                await launcher.run()
            except Exception as error:
                # Designs go on with the workers that there are, and the farm with its designs.
                _log.error("the launcher of workers is started anew", exc_info=error)
            await asyncio.sleep(_RESTART_SECONDS)

    def _designs(self) -> Iterator[Design]:
        farm, now = self._farm, time.time()
        for handle in farm.catalogue:
            if handle.job.state not in FINAL:
                yield design_of(farm.shown(handle), self._saturated_share(handle.job_id))
            elif now - handle.job.end_time.seconds < self._keeps_seconds:
                yield design_of(handle.job)

    def _saturated_share(self, job_id: str) -> float | None:
        """For how much of the time, of late, all threads of the job's workers have been busy."""
        if not isinstance(self._evaluator, Dispatcher):
            return None
        seconds = self._evaluator.scheduler.saturated_seconds(job_id)
        now = time.monotonic()
        measured_at, before, share = self._busy.get(job_id, (now, math.inf, None))
        if seconds is None or seconds < before:
            # There were none, or there are none.
            share, measured_at = None, now
        elif now >= measured_at + _MEASURED_SECONDS:
            share, measured_at = (seconds - before) / (now - measured_at), now
        else:
            return share
        self._busy[job_id] = (measured_at, math.inf if seconds is None else seconds, share)
        return share

    def _hear(self, report: Report) -> None:
        self._farm.said_of_workers = report.sentences
        self._farm.worker_pods = {
            job_id: WorkerPods(*counts.by_phase_and_end())
            for job_id, counts in report.counted.items()
        }
        if isinstance(self._evaluator, Dispatcher):
            self._evaluator.scheduler.set_crashed_hosts(report.crashed)
            self._evaluator.advance_soon()

    def _objection(self, spec: spec_pb2.DesignSpec) -> str | None:
        return beyond_limits(spec.workers, self._settings.limits)


def _ttl_seconds(settings: LauncherSettings) -> float:
    ttl = settings.template["spec"].get("ttlSecondsAfterFinished", _DEFAULT_TTL_SECONDS)
    return float(ttl)
