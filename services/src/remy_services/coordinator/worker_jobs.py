"""Runs a farm's workers on Kubernetes, as one Kubernetes Job per design job."""

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
    design_of,
    limit_violation,
    read_settings,
)
from remy_services.telemetry.samples import WorkerPods

_log = structlog.get_logger()

#: Assumed ttlSecondsAfterFinished of a Kubernetes Job whose template sets none. The design must
#: stay
#: #: known until its Kubernetes Job is gone.
_DEFAULT_TTL_SECONDS = 3600.0
_RESTART_SECONDS = 5.0
#: Minimum interval over which the saturation of workers is measured.
_MEASUREMENT_SECONDS = 15.0


class WorkerJobs(BackgroundTask):
    """Runs the launcher of worker Jobs in the farm's event loop, and restarts it after errors.

    Closing leaves running workers to the next coordinator.
    """

    def __init__(self, farm: Farm, settings_path: Path, evaluator: SharedEvaluator) -> None:
        """Raises SettingsError."""
        try:
            settings = read_settings(settings_path)
        except ConfigurationError as error:
            raise SettingsError(str(error)) from error
        self._farm = farm
        self._settings = settings
        self._retention_seconds = settings.finish_seconds + _ttl_seconds(settings)
        farm.unsupported_reason = self._unsupported_reason
        self._evaluator = evaluator
        # By job id: time of the last measurement, saturated seconds at that time, and saturated
        # share of the interval before it.
        self._saturation: dict[str, tuple[float, float, float | None]] = {}
        self._on_report(Report())

    async def _run(self) -> None:
        while True:
            cluster = KubernetesCluster(self._settings.instance)
            launcher = Launcher(cluster, self._settings, self._designs, self._on_report)
            try:
                await launcher.run()
            except Exception as error:
                # Running workers and designs are unaffected; only scaling stops until the restart.
                _log.error("the worker launcher failed and is restarted", exc_info=error)
            await asyncio.sleep(_RESTART_SECONDS)

    def _designs(self) -> Iterator[Design]:
        farm, now = self._farm, time.time()
        for handle in farm.catalogue:
            if handle.job.state not in FINAL:
                yield design_of(farm.shown(handle), self._saturated_share(handle.job_id))
            elif now - handle.job.end_time.seconds < self._retention_seconds:
                yield design_of(handle.job)

    def _saturated_share(self, job_id: str) -> float | None:
        """Returns the recent share of time with all worker threads of the job busy, or None."""
        if not isinstance(self._evaluator, Dispatcher):
            return None
        seconds = self._evaluator.scheduler.saturated_seconds(job_id)
        now = time.monotonic()
        measured_at, before, share = self._saturation.get(job_id, (now, math.inf, None))
        if seconds is None or seconds < before:
            # The job had no workers at one end of the interval, so it gives no measurement.
            share, measured_at = None, now
        elif now >= measured_at + _MEASUREMENT_SECONDS:
            share, measured_at = (seconds - before) / (now - measured_at), now
        else:
            return share
        self._saturation[job_id] = (measured_at, math.inf if seconds is None else seconds, share)
        return share

    def _on_report(self, report: Report) -> None:
        self._farm.worker_status = report.sentences
        self._farm.worker_pods = {
            job_id: WorkerPods(*counts.by_phase_and_end())
            for job_id, counts in report.counted.items()
        }
        if isinstance(self._evaluator, Dispatcher):
            self._evaluator.scheduler.set_crashed_hosts(report.crashed)
            self._evaluator.advance_soon()

    def _unsupported_reason(self, spec: spec_pb2.DesignSpec) -> str | None:
        return limit_violation(spec.workers, self._settings.limits)


def _ttl_seconds(settings: LauncherSettings) -> float:
    ttl = settings.template["spec"].get("ttlSecondsAfterFinished", _DEFAULT_TTL_SECONDS)
    return float(ttl)
