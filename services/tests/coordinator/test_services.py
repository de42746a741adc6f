"""Tests the health and reflection services."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from remy_proto.v1 import design_service_pb2 as messages
from remy_rpc.settings import Address
from services.tests.coordinator.role_tokens import tokens_file
from services.tests.coordinator.running_server import (
    TIMEOUT_SECONDS,
    Client,
    RunningServer,
    refusal,
    settings_for,
)
from services.tests.stores.local_redis import free_port

_SERVING = health_pb2.HealthCheckResponse.SERVING


def _services(channel: grpc.Channel) -> set[str]:
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    (response,) = stub.ServerReflectionInfo(iter([request]), timeout=TIMEOUT_SECONDS)
    return {service.name for service in response.list_services_response.service}


def _status(channel: grpc.Channel, service: str) -> int:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    request = health_pb2.HealthCheckRequest(service=service)
    status: int = stub.Check(request, timeout=TIMEOUT_SECONDS).status
    return status


def test_reflection_names_all_services(tmp_path: Path) -> None:
    with RunningServer(settings_for(tmp_path, evaluator="workers")) as server:
        assert _services(server.channel()) == {
            "remy_farm.v1.DesignService",
            "remy_farm.v1.WorkerService",
            "grpc.health.v1.Health",
            "grpc.reflection.v1alpha.ServerReflection",
        }


def test_reflection_can_be_disabled(tmp_path: Path) -> None:
    with RunningServer(settings_for(tmp_path, has_reflection=False)) as server:
        with pytest.raises(grpc.RpcError) as caught:
            _services(server.channel())
        assert refusal(caught.value)[0] == grpc.StatusCode.UNIMPLEMENTED


def test_health_needs_no_token(tmp_path: Path) -> None:
    with RunningServer(settings_for(tmp_path, tokens_file=tokens_file(tmp_path))) as server:
        for service in ("", "liveness", "readiness"):
            assert _status(server.channel(), service) == _SERVING
        with pytest.raises(grpc.RpcError) as caught:
            _status(server.channel(), "nothing")
        assert refusal(caught.value)[0] == grpc.StatusCode.NOT_FOUND


def test_the_health_endpoint_serves_health_only(tmp_path: Path) -> None:
    address = Address("127.0.0.1", free_port())
    with (
        RunningServer(settings_for(tmp_path, health_listen=address)),
        grpc.insecure_channel(str(address)) as channel,
    ):
        assert _status(channel, "readiness") == _SERVING
        with pytest.raises(grpc.RpcError) as caught:
            Client(channel).call("GetServerInfo", messages.GetServerInfoRequest())
        assert refusal(caught.value)[0] == grpc.StatusCode.UNIMPLEMENTED


def test_an_unavailable_port_is_an_error(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = Address("127.0.0.1", taken.getsockname()[1])
        server = RunningServer(settings_for(tmp_path, listen=address))
        with pytest.raises(Exception, match="cannot listen on"), server:
            pass
