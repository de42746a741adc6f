"""Tests the TLS checks against a real server with faulty certificates."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from remy_proto.v1 import design_service_pb2 as messages
from remy_rpc.settings import Address, TlsFiles
from remy_services.client.connection import Connection
from remy_services.client.design_client import DesignClient
from remy_services.client.doctor import Verdict, check_tls
from remy_services.client.settings import ConnectionSettings
from remy_services.client.status import Unreachable
from rpc.tests.certificates import Authority, Pair
from services.tests.client.scripted_service import ScriptedService

TIMEOUT_SECONDS = 60.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def other_authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("other_authority"), "somebody else")


Serve = Callable[..., Address]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A function that starts a server with a certificate, optionally with mutual TLS."""
    with ExitStack() as stack:

        def start(pair: Pair, *, client_ca: Path | None = None) -> Address:
            credentials = grpc.ssl_server_credentials(
                [(pair.key.read_bytes(), pair.cert.read_bytes())],
                root_certificates=None if client_ca is None else client_ca.read_bytes(),
                require_client_auth=client_ca is not None,
            )
            service = ScriptedService()
            service.script("GetServerInfo", messages.GetServerInfoResponse(coordinator="c1"))
            server = service.serve(credentials)
            stack.callback(lambda: server.stop(grace=None).wait())
            return service.address

        yield start


def check(address: Address, tls: TlsFiles | None) -> tuple[Verdict, str]:
    finding = check_tls(
        ConnectionSettings(address, tls), datetime.now(UTC), timeout_seconds=TIMEOUT_SECONDS
    )
    assert bool(finding.advice) == (finding.verdict != Verdict.OK)
    return finding.verdict, finding.text


def can_connect(address: Address, tls: TlsFiles | None) -> bool:
    """Returns whether a real client can connect, which the check must agree with."""
    with Connection(ConnectionSettings(address, tls), patience_seconds=0) as connection:
        try:
            return DesignClient(connection).server_info().coordinator == "c1"
        except Unreachable:
            return False


def tls_files(authority: Authority, **more: Any) -> TlsFiles:
    return TlsFiles(ca=authority.path, **more)


def test_a_valid_certificate(serve: Serve, authority: Authority) -> None:
    address = serve(authority.issue("farm.example.org", "127.0.0.1"))
    verdict, text = check(address, tls_files(authority))
    assert verdict == Verdict.OK
    assert "farm.example.org, 127.0.0.1" in text
    assert can_connect(address, tls_files(authority))


def test_a_certificate_that_expires_soon(serve: Serve, authority: Authority) -> None:
    address = serve(authority.issue("127.0.0.1", ends=timedelta(days=3)))
    verdict, _ = check(address, tls_files(authority))
    assert verdict == Verdict.WARNING
    assert can_connect(address, tls_files(authority))


def test_a_certificate_for_another_name(serve: Serve, authority: Authority) -> None:
    address = serve(authority.issue("farm.example.org"))
    verdict, text = check(address, tls_files(authority))
    assert verdict == Verdict.PROBLEM
    assert text == "the coordinator's certificate is for farm.example.org, not for 127.0.0.1"
    assert not can_connect(address, tls_files(authority))
    named = tls_files(authority, server_name="farm.example.org")
    assert check(address, named)[0] == Verdict.OK
    assert can_connect(address, named)


@pytest.mark.parametrize(
    ("begins", "ends", "expected"),
    [(-9, -2, "has expired"), (2, 9, "is not valid before")],
)
def test_an_expired_or_future_certificate(
    begins: int, ends: int, expected: str, serve: Serve, authority: Authority
) -> None:
    pair = authority.issue("127.0.0.1", begins=timedelta(days=begins), ends=timedelta(days=ends))
    address = serve(pair)
    verdict, text = check(address, tls_files(authority))
    assert verdict == Verdict.PROBLEM
    assert expected in text
    assert not can_connect(address, tls_files(authority))


@pytest.mark.parametrize("is_named", [True, False])
def test_a_certificate_of_an_untrusted_ca(
    is_named: bool, serve: Serve, authority: Authority, other_authority: Authority
) -> None:
    address = serve(authority.issue("127.0.0.1"))
    tls = tls_files(other_authority) if is_named else TlsFiles()
    verdict, text = check(address, tls)
    assert verdict == Verdict.PROBLEM
    assert "is not signed by a CA" in text
    assert not can_connect(address, tls)


def test_mutual_tls(serve: Serve, authority: Authority, other_authority: Authority) -> None:
    address = serve(authority.issue("127.0.0.1"), client_ca=authority.path)
    client_files, foreign = authority.issue("ann"), other_authority.issue("ann")

    verdict, text = check(address, tls_files(authority))
    assert verdict == Verdict.PROBLEM
    assert "requires a client certificate" in text
    assert not can_connect(address, tls_files(authority))

    tls = tls_files(authority, cert=foreign.cert, key=foreign.key)
    verdict, text = check(address, tls)
    assert verdict == Verdict.PROBLEM
    assert f"rejects the certificate in {foreign.cert}" in text
    assert not can_connect(address, tls)

    tls = tls_files(authority, cert=client_files.cert, key=client_files.key)
    assert check(address, tls)[0] == Verdict.OK
    assert can_connect(address, tls)


def test_an_expired_client_certificate(serve: Serve, authority: Authority) -> None:
    address = serve(authority.issue("127.0.0.1"), client_ca=authority.path)
    client_files = authority.issue("ann", begins=timedelta(days=-9), ends=timedelta(days=-1))
    tls = tls_files(authority, cert=client_files.cert, key=client_files.key)
    verdict, text = check(address, tls)
    assert verdict == Verdict.PROBLEM
    assert f"rejects the certificate in {client_files.cert}" in text
    yesterday = datetime.now(UTC) - timedelta(days=1)
    assert f"which is valid until {yesterday:%Y-%m-%d}" in text
    assert not can_connect(address, tls)


def test_a_key_of_another_certificate(serve: Serve, authority: Authority) -> None:
    address = serve(authority.issue("127.0.0.1"))
    one, other = authority.issue("ann"), authority.issue("ann")
    verdict, text = check(address, tls_files(authority, cert=one.cert, key=other.key))
    assert verdict == Verdict.PROBLEM
    assert "cannot be used" in text


def test_a_pipe_is_refused(serve: Serve, authority: Authority, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    address = serve(authority.issue("127.0.0.1"))
    client_files = authority.issue("ann")
    for tls in (TlsFiles(ca=pipe), tls_files(authority, cert=pipe, key=client_files.key)):
        verdict, text = check(address, tls)
        assert verdict == Verdict.PROBLEM
        assert f"{pipe} is a pipe" in text


def test_plain_text_to_a_tls_server(serve: Serve, authority: Authority) -> None:
    address = serve(authority.issue("127.0.0.1"))
    verdict, text = check(address, None)
    assert verdict == Verdict.PROBLEM
    assert "uses TLS" in text
    assert not can_connect(address, None)


def test_tls_to_a_plain_text_server(service: ScriptedService, authority: Authority) -> None:
    service.script("GetServerInfo", messages.GetServerInfoResponse(coordinator="c1"))
    verdict, text = check(service.address, tls_files(authority))
    assert verdict == Verdict.PROBLEM
    assert "does not use TLS" in text
    assert not can_connect(service.address, tls_files(authority))
    assert check(service.address, None)[0] == Verdict.OK
    assert can_connect(service.address, None)
