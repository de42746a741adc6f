"""Sends tasks to workers over gRPC, or to the actors of a Ray cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remy_proto.exports import lazy_exports

if TYPE_CHECKING:
    from remy_services.transport.grpc import SimulatorIdentity as SimulatorIdentity
    from remy_services.transport.ray import RaySettings as RaySettings
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, __file__)
