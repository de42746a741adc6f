"""Evaluators that several designs share: tasks, leases, fairness, and ways to the workers.

`board` decides, as a state machine without I/O; `dispatch` runs a board in an event loop for those
who wait for evaluations. Around them are the transports: threads of this process (`LocalFleet`),
and workers that call in over gRPC (`WorkerFleet`).
"""

from remy_services.fleet.local import LocalFleet
from remy_services.fleet.workers import WorkerFleet, WorkerFleetSettings

__all__ = ["LocalFleet", "WorkerFleet", "WorkerFleetSettings"]
