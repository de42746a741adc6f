"""Keepalive, TLS settings and TLS detection of channels."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from remy_rpc.channel import CLIENT_OPTIONS, SERVER_OPTIONS, open_channel, speaks_tls
from remy_rpc.settings import Address, SettingsError, TlsFiles, UnixSocket, tls_settings
from rpc.tests.certificates import Authority

_DEADLINE_SECONDS = 60.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def tls_server(authority: Authority) -> Iterator[Address]:
    """A server without methods, whose certificate is for a name other than its address."""
    pair = authority.issue("farm.internal")
    server = grpc.server(ThreadPoolExecutor(1))
    credentials = grpc.ssl_server_credentials([(pair.key.read_bytes(), pair.cert.read_bytes())])
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    yield Address("127.0.0.1", port)
    server.stop(grace=None).wait()


@pytest.fixture
def plain_server() -> Iterator[Address]:
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield Address("127.0.0.1", port)
    server.stop(grace=None).wait()


def _is_reached(address: Address, tls: TlsFiles | None) -> bool:
    """Whether a call reaches the server, which answers that the method is unknown."""
    with open_channel(address, tls, user_agent="test") as channel:
        call: Any = channel.unary_unary("/nothing/Nothing")
        with pytest.raises(grpc.RpcError) as raised:
            call(b"", timeout=_DEADLINE_SECONDS)
    assert isinstance(raised.value, grpc.Call)
    return raised.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_coordinator_accepts_the_ping_interval_of_clients() -> None:
    """A coordinator closes connections that ping more often than it allows."""
    server, client = dict(SERVER_OPTIONS), dict(CLIENT_OPTIONS)
    allowed_ms = server["grpc.http2.min_recv_ping_interval_without_data_ms"]
    assert client["grpc.keepalive_time_ms"] > allowed_ms


def test_both_ends_have_the_same_keepalive_timeout() -> None:
    server, client = dict(SERVER_OPTIONS), dict(CLIENT_OPTIONS)
    for option in ("grpc.keepalive_time_ms", "grpc.keepalive_timeout_ms"):
        assert server[option] == client[option]


def test_certificate_may_be_a_file_or_its_content(
    authority: Authority, tls_server: Address
) -> None:
    name = "farm.internal"
    assert _is_reached(tls_server, TlsFiles(ca=authority.path, server_name=name))
    assert _is_reached(tls_server, TlsFiles(ca=authority.path.read_bytes(), server_name=name))
    assert not _is_reached(tls_server, TlsFiles(ca=authority.path))


def test_tls_servers_are_detected(
    tls_server: Address, plain_server: Address, tmp_path: Path
) -> None:
    assert speaks_tls(tls_server)
    assert not speaks_tls(plain_server)
    assert not speaks_tls(UnixSocket(str(tmp_path / "s")))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = Address("127.0.0.1", silent.getsockname()[1])
        assert not speaks_tls(address, timeout_seconds=0.05)
    assert not speaks_tls(address)


@pytest.mark.parametrize("flag", ["ca", "cert", "key"])
def test_error_of_a_tls_file_names_the_file_and_its_flag(flag: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.touch()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, why in (
        (tmp_path / "nowhere", "No such file"),
        (empty, "is not a PEM file"),
        (pipe, "a pipe that nobody writes to"),
    ):
        files: dict[str, Any] = {flag: path}
        with pytest.raises(SettingsError, match=rf"--tls-{flag}: .*{path.name}.*{why}"):
            open_channel(Address(), TlsFiles(**files), user_agent="test")


def test_tls_is_the_default_except_on_loopback() -> None:
    here, there = Address(), Address("farm.example.org")
    assert tls_settings(TlsFiles(), insecure=False, coordinator=here) is None
    assert tls_settings(TlsFiles(), insecure=False, coordinator=UnixSocket("/s")) is None
    assert tls_settings(TlsFiles(), insecure=False, coordinator=there) == TlsFiles()
    assert tls_settings(TlsFiles(), insecure=True, coordinator=there) is None
    named = TlsFiles(server_name="farm")
    assert tls_settings(named, insecure=False, coordinator=here) == named


@pytest.mark.parametrize(
    ("files", "insecure", "word"),
    [
        (TlsFiles(ca=Path("ca.pem")), True, "exclude each other"),
        (TlsFiles(cert=Path("cert.pem")), False, "--tls-key is missing"),
        (TlsFiles(key=Path("key.pem")), False, "--tls-cert is missing"),
    ],
)
def test_contradictory_flags_are_rejected(files: TlsFiles, insecure: bool, word: str) -> None:
    with pytest.raises(SettingsError, match=word):
        tls_settings(files, insecure=insecure, coordinator=Address())
