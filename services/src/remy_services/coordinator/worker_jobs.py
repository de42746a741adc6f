"""Workers that Kubernetes runs for the jobs of a farm, one Kubernetes Job for each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import structlog

from remy_farm.v1 import spec_pb2
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

_log = structlog.get_logger()

#: A Kubernetes Job that ended removes itself after its own time; then its design may be forgotten.
_DEFAULT_TTL_SECONDS = 3600.0
_RESTART_SECONDS = 5.0


class WorkerJobs(BackgroundTask):
    """Keeps a launcher at work. To be used in the farm's event loop.

    What is closed leaves the workers that there are to the next coordinator.
    """

    def __init__(self, farm: Farm, settings_path: Path) -> None:
        """Raises SettingsError."""
        try:
            settings = read_settings(settings_path)
        except ConfigurationError as error:
            raise SettingsError(str(error)) from error
        self._farm = farm
        self._settings = settings
        self._keeps_seconds = settings.finish_seconds + _ttl_seconds(settings)
        farm.objection = self._objection

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
                yield design_of(farm.shown(handle))
            elif now - handle.job.end_time.seconds < self._keeps_seconds:
                yield design_of(handle.job)

    def _hear(self, report: Report) -> None:
        self._farm.said_of_workers = report.sentences

    def _objection(self, spec: spec_pb2.DesignSpec) -> str | None:
        return beyond_limits(spec.workers, self._settings.limits)


def _ttl_seconds(settings: LauncherSettings) -> float:
    ttl = settings.template["spec"].get("ttlSecondsAfterFinished", _DEFAULT_TTL_SECONDS)
    return float(ttl)
