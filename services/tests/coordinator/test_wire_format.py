"""Tests that clients and coordinators with different wire formats refuse each other."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import grpc
import pytest

from remy_proto.v1 import design_service_pb2 as messages
from remy_rpc.settings import parse_address
from remy_rpc.wire_format import WIRE_FORMAT, WIRE_FORMAT_KEY, WIRE_FORMAT_METADATA
from remy_services.client.connection import Connection
from remy_services.client.settings import ConnectionSettings
from remy_services.client.status import Refused, Unreachable
from services.tests.client.scripted_service import Failure, ScriptedService, retry_later
from services.tests.coordinator.hostile import DESIGN_METHODS, call_with_bytes
from services.tests.coordinator.role_tokens import TOKENS, bearer, tokens_file
from services.tests.coordinator.running_server import RunningServer, refusal, settings_for

_VERSION = version("remy-farm-services")
_JOBS = messages.ListJobsResponse()


@pytest.mark.parametrize("method", DESIGN_METHODS, ids=lambda method: str(method.name))
def test_a_client_without_version_is_refused_with_advice(
    server: RunningServer, method: object
) -> None:
    code, sentence = call_with_bytes(server.channel(metadata=()), method, [b""])
    assert code == grpc.StatusCode.FAILED_PRECONDITION
    assert sentence == (
        f"this farm (remy-farm-services {_VERSION}) uses wire format {WIRE_FORMAT}, but the client "
        f"uses an older, unnamed one; install remy-farm-services {_VERSION} or newer, or finish "
        "the work with the older version"
    )


@pytest.mark.parametrize(
    ("metadata", "advice"),
    [
        (str(WIRE_FORMAT - 1), "or finish the work with the older version"),
        (str(WIRE_FORMAT + 1), "update the farm, or use a client of its version"),
        ("x" * 1000, "or finish the work with the older version"),
    ],
)
def test_the_refusal_names_the_clients_version(
    server: RunningServer, metadata: str, advice: str
) -> None:
    channel = server.channel(metadata=((WIRE_FORMAT_KEY, metadata),))
    code, sentence = call_with_bytes(channel, DESIGN_METHODS[0], [b""])
    assert code == grpc.StatusCode.FAILED_PRECONDITION
    assert f"the client uses version '{metadata[:20]}'; " in sentence
    assert sentence.endswith(advice)


def test_unauthenticated_calls_reveal_no_versions(tmp_path: Path) -> None:
    with RunningServer(settings_for(tmp_path, tokens_file=tokens_file(tmp_path))) as server:
        channel = server.channel(metadata=())
        code, sentence = call_with_bytes(channel, DESIGN_METHODS[0], [b""])
        assert code == grpc.StatusCode.UNAUTHENTICATED
        assert _VERSION not in sentence
        code, _ = call_with_bytes(
            channel, DESIGN_METHODS[0], [b""], bearer(next(iter(TOKENS.values())))
        )
        assert code in (grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.PERMISSION_DENIED)


def test_health_requires_no_version(server: RunningServer) -> None:
    check: Any = server.channel(metadata=()).unary_unary("/grpc.health.v1.Health/Check")
    assert check(b"", timeout=60)


def test_responses_carry_the_version(server: RunningServer) -> None:
    channel: Any = server.channel()
    list_jobs = channel.unary_unary("/remy_farm.v1.DesignService/ListJobs")
    _, call = list_jobs.with_call(b"", timeout=60)
    assert WIRE_FORMAT_METADATA[0] in [tuple(each) for each in call.initial_metadata()]
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/remy_farm.v1.DesignService/GetJob")(b"", timeout=60)
    assert isinstance(caught.value, grpc.Call)
    assert refusal(caught.value)[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert WIRE_FORMAT_METADATA[0] in [tuple(each) for each in caught.value.initial_metadata()]


def _list_jobs(service: ScriptedService) -> messages.ListJobsResponse:
    server = service.serve()
    try:
        address = parse_address(str(service.address))
        with Connection(ConnectionSettings(address), patience_seconds=0) as connection:
            jobs: messages.ListJobsResponse = connection.call(
                "ListJobs", messages.ListJobsRequest()
            )
            return jobs
    finally:
        server.stop(None)


@pytest.mark.parametrize("metadata", [(), ((WIRE_FORMAT_KEY, "1"),)])
def test_a_client_reports_an_older_farm(metadata: Sequence[tuple[str, str]]) -> None:
    service = ScriptedService(initial_metadata=tuple(metadata))
    service.script("ListJobs", _JOBS)
    with pytest.raises(Refused) as caught:
        _list_jobs(service)
    assert str(caught.value) == (
        f"the coordinator at {service.address} is older than this client (remy-farm-services "
        f"{_VERSION}), which uses wire format {WIRE_FORMAT}, and may have executed the request; "
        "update the farm, or use a client of the farm's version"
    )
    assert len(service.requests) == 1, "it does not ask again"


def test_errors_of_an_older_farm_are_not_blamed_on_the_user() -> None:
    service = ScriptedService(initial_metadata=())
    mistake = Failure(grpc.StatusCode.INVALID_ARGUMENT, "spec.network.links is not a known key")
    service.script("ListJobs", mistake)
    with pytest.raises(Refused, match=r"is older than this client .* wire format 2; update"):
        _list_jobs(service)


def test_an_unreachable_farm_is_not_reported_as_older() -> None:
    service = ScriptedService(initial_metadata=())
    service.script("ListJobs", retry_later(0.1))
    with pytest.raises(Unreachable, match="starting up"):
        _list_jobs(service)


def test_a_client_sends_its_version_with_every_call() -> None:
    service = ScriptedService()
    service.script("ListJobs", _JOBS)
    assert _list_jobs(service) == _JOBS
    assert service.metadata[0][WIRE_FORMAT_KEY] == str(WIRE_FORMAT)
