"""TLS that does not work, each time for another reason, against a real server."""

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
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"), "somebody else")


Serve = Callable[..., Address]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Starts a server with a certificate, which may ask clients for one."""
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


def answers(address: Address, tls: TlsFiles | None) -> bool:
    """Whether the client gets through: what the diagnosis must agree with."""
    with Connection(ConnectionSettings(address, tls), patience_seconds=0) as connection:
        try:
            return DesignClient(connection).server_info().coordinator == "c1"
        except Unreachable:
            return False


def trusting(authority: Authority, **more: Any) -> TlsFiles:
    return TlsFiles(ca=authority.path, **more)


def test_a_sound_certificate(serve: Serve, authority: Authority) -> None:
    address = serve(authority.issue("farm.example.org", "127.0.0.1"))
    verdict, text = check(address, trusting(authority))
    assert verdict == Verdict.OK
    assert "farm.example.org, 127.0.0.1" in text
    assert answers(address, trusting(authority))


def test_a_certificate_that_ends_soon(serve: Serve, authority: Authority) -> None:
    address = serve(authority.issue("127.0.0.1", ends=timedelta(days=3)))
    verdict, _ = check(address, trusting(authority))
    assert verdict == Verdict.WARNING
    assert answers(address, trusting(authority))


def test_a_certificate_for_another_name(serve: Serve, authority: Authority) -> None:
    address = serve(authority.issue("farm.example.org"))
    verdict, text = check(address, trusting(authority))
    assert verdict == Verdict.PROBLEM
    assert text == "the coordinator's certificate is for farm.example.org, not for 127.0.0.1"
    assert not answers(address, trusting(authority))
    named = trusting(authority, server_name="farm.example.org")
    assert check(address, named)[0] == Verdict.OK
    assert answers(address, named)


@pytest.mark.parametrize(
    ("begins", "ends", "words"),
    [(-9, -2, "has expired"), (2, 9, "is not valid before")],
)
def test_a_certificate_of_another_time(
    begins: int, ends: int, words: str, serve: Serve, authority: Authority
) -> None:
    pair = authority.issue("127.0.0.1", begins=timedelta(days=begins), ends=timedelta(days=ends))
    address = serve(pair)
    verdict, text = check(address, trusting(authority))
    assert verdict == Verdict.PROBLEM
    assert words in text
    assert not answers(address, trusting(authority))


@pytest.mark.parametrize("is_named", [True, False])
def test_a_certificate_that_nobody_knows(
    is_named: bool, serve: Serve, authority: Authority, stranger: Authority
) -> None:
    address = serve(authority.issue("127.0.0.1"))
    tls = trusting(stranger) if is_named else TlsFiles()
    verdict, text = check(address, tls)
    assert verdict == Verdict.PROBLEM
    assert "is not signed by any of those" in text
    assert not answers(address, tls)


def test_mutual_tls(serve: Serve, authority: Authority, stranger: Authority) -> None:
    address = serve(authority.issue("127.0.0.1"), client_ca=authority.path)
    own, foreign = authority.issue("ann"), stranger.issue("ann")

    verdict, text = check(address, trusting(authority))
    assert verdict == Verdict.PROBLEM
    assert "wants to see a certificate of this client" in text
    assert not answers(address, trusting(authority))

    tls = trusting(authority, cert=foreign.cert, key=foreign.key)
    verdict, text = check(address, tls)
    assert verdict == Verdict.PROBLEM
    assert f"does not accept the certificate in {foreign.cert}" in text
    assert not answers(address, tls)

    tls = trusting(authority, cert=own.cert, key=own.key)
    assert check(address, tls)[0] == Verdict.OK
    assert answers(address, tls)


def test_the_clients_own_certificate_has_ended(serve: Serve, authority: Authority) -> None:
    address = serve(authority.issue("127.0.0.1"), client_ca=authority.path)
    own = authority.issue("ann", begins=timedelta(days=-9), ends=timedelta(days=-1))
    tls = trusting(authority, cert=own.cert, key=own.key)
    verdict, text = check(address, tls)
    assert verdict == Verdict.PROBLEM
    assert f"does not accept the certificate in {own.cert}" in text
    yesterday = datetime.now(UTC) - timedelta(days=1)
    assert f"which is valid until {yesterday:%Y-%m-%d}" in text
    assert not answers(address, tls)


def test_a_key_of_another_certificate(serve: Serve, authority: Authority) -> None:
    address = serve(authority.issue("127.0.0.1"))
    one, other = authority.issue("ann"), authority.issue("ann")
    verdict, text = check(address, trusting(authority, cert=one.cert, key=other.key))
    assert verdict == Verdict.PROBLEM
    assert "cannot be used" in text


def test_a_pipe_is_no_certificate(serve: Serve, authority: Authority, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    address = serve(authority.issue("127.0.0.1"))
    own = authority.issue("ann")
    for tls in (TlsFiles(ca=pipe), trusting(authority, cert=pipe, key=own.key)):
        verdict, text = check(address, tls)
        assert verdict == Verdict.PROBLEM
        assert f"{pipe} is a pipe" in text


def test_plain_text_where_tls_is_spoken(serve: Serve, authority: Authority) -> None:
    address = serve(authority.issue("127.0.0.1"))
    verdict, text = check(address, None)
    assert verdict == Verdict.PROBLEM
    assert "speaks TLS" in text
    assert not answers(address, None)


def test_tls_where_plain_text_is_spoken(service: ScriptedService, authority: Authority) -> None:
    service.script("GetServerInfo", messages.GetServerInfoResponse(coordinator="c1"))
    verdict, text = check(service.address, trusting(authority))
    assert verdict == Verdict.PROBLEM
    assert "does not speak TLS" in text
    assert not answers(service.address, trusting(authority))
    assert check(service.address, None)[0] == Verdict.OK
    assert answers(service.address, None)
