"""The services of a coordinator's server."""

from __future__ import annotations

from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

import remy_simulator
from remy_farm.v1 import design_service_pb2, design_service_pb2_grpc
from remy_services.coordinator.calls import DesignService
from remy_services.coordinator.calls.information import ServerInformation
from remy_services.coordinator.serving.health import Health
from remy_services.coordinator.serving.opening import Opened

_DESIGN_SERVICE = design_service_pb2.DESCRIPTOR.services_by_name["DesignService"].full_name


def add_services(
    server: grpc.aio.Server, opened: Opened, our_health: Health, *, has_reflection: bool
) -> None:
    """Adds everything that is called over the network."""
    farm, evaluators = opened.farm, opened.evaluators
    durability = farm.environment.store.durability()
    information = ServerInformation(
        farm, opened.store_watch, durability, remy_simulator.fingerprint()
    )
    service = DesignService(farm, information)
    # What is generated has no types.
    add_design_service: Any = design_service_pb2_grpc.add_DesignServiceServicer_to_server
    add_design_service(service, server)
    health_pb2_grpc.add_HealthServicer_to_server(our_health.servicer, server)
    evaluators.add_to(server)
    if has_reflection:
        names = (
            _DESIGN_SERVICE,
            *evaluators.services,
            health.SERVICE_NAME,
            reflection.SERVICE_NAME,
        )
        reflection.enable_server_reflection(names, server)
