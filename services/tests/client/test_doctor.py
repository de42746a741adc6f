import socket
import time
from pathlib import Path

import grpc
import pytest

from remy_proto.v1 import design_service_pb2 as messages
from remy_rpc.settings import Address, Token
from remy_services.client.doctor import Check, Finding, Verdict, diagnose
from remy_services.client.settings import ConnectionSettings
from services.tests.client.scripted_service import Failure, ScriptedService, retry_later

# The versions of the client and of its simulator, as `diagnose` takes them.
CLIENT = messages.GetServerInfoResponse(
    version="1.2", simulator_version="3.4", simulator_digest="d"
)


def info() -> messages.GetServerInfoResponse:
    return messages.GetServerInfoResponse(
        version="1.2",
        simulator_version="3.4",
        simulator_digest="d",
        coordinator="c1",
        unix_seconds=time.time(),
        store=messages.StoreInfo(kind="sqlite", durable=True, available=True),
        evaluators=messages.EvaluatorsInfo(kind="local", threads=2),
        caller="ann",
        role="submitter",
    )


def findings(
    address: Address, token: Token | None = None, timeout_seconds: float = 60.0
) -> list[Finding]:
    settings = ConnectionSettings(address, None, token)
    return list(diagnose(settings, CLIENT, timeout_seconds=timeout_seconds))


def verdicts(results: list[Finding]) -> dict[Check, Verdict]:
    """Returns verdicts by check; asserts that all checks after SETTINGS are present, in order."""
    assert [finding.check for finding in results] == list(Check)[1:]
    return {finding.check: finding.verdict for finding in results}


def test_a_healthy_coordinator_passes_all_checks(service: ScriptedService) -> None:
    service.script("GetServerInfo", info())
    assert set(verdicts(findings(service.address)).values()) == {Verdict.OK}


def test_a_refused_connection() -> None:
    results = findings(Address("127.0.0.1", 1))
    assert results[0].text == "connection to 127.0.0.1:1 refused"
    assert list(verdicts(results).values()) == [Verdict.PROBLEM] + [Verdict.SKIPPED] * 7


def test_an_unknown_host_name() -> None:
    results = findings(Address("no-such-host.invalid", 1))
    assert results[0].text == "the host name no-such-host.invalid cannot be resolved"


def test_a_silent_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = Address("127.0.0.1", silent.getsockname()[1])
        results = findings(address, timeout_seconds=0.3)
    assert verdicts(results)[Check.COORDINATOR] == Verdict.PROBLEM
    assert "did not answer within 0.3 s" in results[2].text


def test_a_starting_coordinator(service: ScriptedService) -> None:
    service.script("GetServerInfo", retry_later(5, "the store cannot be reached yet"))
    results = findings(service.address)
    assert verdicts(results)[Check.COORDINATOR] == Verdict.PROBLEM
    assert results[2].text == "the store cannot be reached yet"


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED]
)
def test_a_refused_token(code: grpc.StatusCode, service: ScriptedService, tmp_path: Path) -> None:
    service.script("GetServerInfo", Failure(code, "the token is not valid"))
    token = Token("secret-token", str(tmp_path / "token"))
    results = findings(service.address, token)
    by_check = verdicts(results)
    assert (by_check[Check.COORDINATOR], by_check[Check.TOKEN]) == (Verdict.OK, Verdict.PROBLEM)
    assert by_check[Check.STORE] == Verdict.SKIPPED
    assert results[3].text == f"the token is not valid; it came from {tmp_path / 'token'}"
    assert "secret-token" not in repr(results)


def test_a_missing_token(service: ScriptedService) -> None:
    service.script("GetServerInfo", Failure(grpc.StatusCode.UNAUTHENTICATED, "a token is needed"))
    assert findings(service.address)[3].text == "a token is needed, and none is set"


def test_a_token_file_readable_by_others(service: ScriptedService, tmp_path: Path) -> None:
    service.script("GetServerInfo", info())
    path = tmp_path / "token"
    path.write_text("secret-token")
    path.chmod(0o644)
    results = findings(service.address, Token("secret-token", str(path)))
    assert [each.verdict for each in results if each.check == Check.TOKEN] == [
        Verdict.WARNING,
        Verdict.OK,
    ]
    path.chmod(0o600)
    results = findings(service.address, Token("secret-token", str(path)))
    assert set(verdicts(results).values()) == {Verdict.OK}
