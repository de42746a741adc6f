"""Who evaluates for the jobs, by the kind that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import grpc

from remy_farm.v1 import worker_service_pb2
from remy_services.coordinator.serving.settings import ServerSettings, SettingsError
from remy_services.evaluation import SharedEvaluator
from remy_services.fleet import LocalFleet, WorkerFleet
from remy_services.fleet.ray import RayFleet, RayUnavailable

_WORKER_SERVICE = worker_service_pb2.DESCRIPTOR.services_by_name["WorkerService"].full_name


def _nothing(server: grpc.aio.Server) -> None:
    pass


@dataclass(frozen=True)
class Evaluators:
    """An evaluator, and what it serves to its workers."""

    evaluator: SharedEvaluator
    #: Adds that to a server.
    add_to: Callable[[grpc.aio.Server], None] = _nothing
    #: Full names of what was added.
    services: tuple[str, ...] = ()


def make_evaluators(settings: ServerSettings, work_left: Callable[[str], bool]) -> Evaluators:
    """Those of the settings, to be used in the running event loop.

    `work_left(job_id)` says whether a job, or any if empty, may still have something to evaluate.
    Raises SettingsError.
    """
    match settings.evaluator:
        case "local":
            return Evaluators(LocalFleet(settings.threads))
        case "workers":
            fleet = WorkerFleet(work_left=work_left, reproductions=settings.reproductions)
            return Evaluators(fleet, fleet.add_to, (_WORKER_SERVICE,))
        case "ray":
            return Evaluators(_ray_fleet(settings, work_left))
    raise SettingsError(
        f"--evaluator is {settings.evaluator}, which this coordinator does not have"
    )


def _ray_fleet(settings: ServerSettings, work_left: Callable[[str], bool]) -> RayFleet:
    try:
        fleet = RayFleet(settings.ray, work_left=work_left, reproductions=settings.reproductions)
    except RayUnavailable as error:
        raise SettingsError(f"--evaluator is ray: {error}") from error
    fleet.begin()
    return fleet
