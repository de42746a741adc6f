"""Evaluation on the actors of a Ray cluster, which a process of its own drives.

Ray ends the processes that are connected to it when its head stays away, keeps connections that are
of no use any more, and unpickles what it receives. None of that is to happen to a coordinator.
Its driver (`remy_workers.ray`) is therefore a child process, which calls in like workers do, with
one stream for each actor, through a socket that only this user can open.
"""

from remy_services.fleet.ray.ray_fleet import RayFleet
from remy_services.fleet.ray.settings import RaySettings, RayUnavailable

__all__ = ["RayFleet", "RaySettings", "RayUnavailable"]
