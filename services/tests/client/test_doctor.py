import socket
import time
from pathlib import Path

import grpc
import pytest

from remy_proto.v1 import design_service_pb2 as messages
from remy_rpc.settings import Address, Token
from remy_services.client.doctor import Check, Finding, Verdict, diagnose
from remy_services.client.settings import ConnectionSettings
from services.tests.client.scripted_service import Failure, ScriptedService, later

OWN = messages.GetServerInfoResponse(version="1.2", simulator_version="3.4", simulator_digest="d")


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
    return list(diagnose(settings, OWN, timeout_seconds=timeout_seconds))


def verdicts(found: list[Finding]) -> dict[Check, Verdict]:
    """Every check but that of the settings has one, in order."""
    assert [finding.check for finding in found] == list(Check)[1:]
    return {finding.check: finding.verdict for finding in found}


def test_all_is_well(service: ScriptedService) -> None:
    service.script("GetServerInfo", info())
    assert set(verdicts(findings(service.address)).values()) == {Verdict.OK}


def test_nobody_listens() -> None:
    found = findings(Address("127.0.0.1", 1))
    assert found[0].text == "nobody listens at 127.0.0.1:1"
    assert list(verdicts(found).values()) == [Verdict.PROBLEM] + [Verdict.SKIPPED] * 7


def test_a_name_that_is_unknown() -> None:
    found = findings(Address("no-such-host.invalid", 1))
    assert found[0].text == "the name no-such-host.invalid is not known"


def test_somebody_who_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = Address("127.0.0.1", silent.getsockname()[1])
        found = findings(address, timeout_seconds=0.3)
    assert verdicts(found)[Check.COORDINATOR] == Verdict.PROBLEM
    assert "did not answer within 0.3 s" in found[2].text


def test_a_coordinator_that_is_starting(service: ScriptedService) -> None:
    service.script("GetServerInfo", later(5, "the store cannot be reached yet"))
    found = findings(service.address)
    assert verdicts(found)[Check.COORDINATOR] == Verdict.PROBLEM
    assert found[2].text == "the store cannot be reached yet"


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED]
)
def test_a_token_that_is_refused(
    code: grpc.StatusCode, service: ScriptedService, tmp_path: Path
) -> None:
    service.script("GetServerInfo", Failure(code, "the token is of no use here"))
    token = Token("secret-token", str(tmp_path / "token"))
    found = findings(service.address, token)
    by_check = verdicts(found)
    assert (by_check[Check.COORDINATOR], by_check[Check.TOKEN]) == (Verdict.OK, Verdict.PROBLEM)
    assert by_check[Check.STORE] == Verdict.SKIPPED
    assert found[3].text == f"the token is of no use here; it came from {tmp_path / 'token'}"
    assert "secret-token" not in repr(found)


def test_a_token_that_is_missing(service: ScriptedService) -> None:
    service.script("GetServerInfo", Failure(grpc.StatusCode.UNAUTHENTICATED, "a token is needed"))
    assert findings(service.address)[3].text == "a token is needed, and none is set"


def test_a_token_file_that_others_may_read(service: ScriptedService, tmp_path: Path) -> None:
    service.script("GetServerInfo", info())
    path = tmp_path / "token"
    path.write_text("secret-token")
    path.chmod(0o644)
    found = findings(service.address, Token("secret-token", str(path)))
    assert [each.verdict for each in found if each.check == Check.TOKEN] == [
        Verdict.WARNING,
        Verdict.OK,
    ]
    path.chmod(0o600)
    found = findings(service.address, Token("secret-token", str(path)))
    assert set(verdicts(found).values()) == {Verdict.OK}
