"""Coordinator: runs jobs and serves the gRPC API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remy_proto.exports import lazy_exports

if TYPE_CHECKING:
    from remy_services.coordinator.checkpointing import RunSettings as RunSettings
    from remy_services.coordinator.farm import CallLimits as CallLimits
    from remy_services.coordinator.farm import FarmSettings as FarmSettings
    from remy_services.coordinator.instrumentation import ExportSettings as ExportSettings
    from remy_services.coordinator.instrumentation import telemetry_export as telemetry_export
    from remy_services.coordinator.server import ServerSettings as ServerSettings
    from remy_services.coordinator.server import serve as serve
    from remy_services.coordinator.tls import ServerTls as ServerTls
else:
    __all__, __getattr__, __dir__ = lazy_exports(__name__, __file__)
