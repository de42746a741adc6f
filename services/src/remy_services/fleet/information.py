"""What a fleet says of itself."""

from __future__ import annotations

from remy_farm.v1 import design_service_pb2
from remy_services.fleet.board import BoardSnapshot


def describe_evaluators(kind: str, snapshot: BoardSnapshot) -> design_service_pb2.EvaluatorsInfo:
    """A board's snapshot for the service's clients."""
    return design_service_pb2.EvaluatorsInfo(
        kind=kind,
        workers=snapshot.workers,
        busy_workers=snapshot.busy_workers,
        threads=snapshot.threads,
        quarantined_workers=snapshot.quarantined_workers,
        tasks_waiting=snapshot.tasks_waiting,
        tasks_running=snapshot.tasks_running,
    )
