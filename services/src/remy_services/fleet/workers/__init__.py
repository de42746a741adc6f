"""Evaluation workers that call in over gRPC: one stream each, tasks one way, results the other."""

from remy_services.fleet.workers.settings import WorkerFleetSettings
from remy_services.fleet.workers.worker_fleet import WorkerFleet

__all__ = ["WorkerFleet", "WorkerFleetSettings"]
