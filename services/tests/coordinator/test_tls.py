"""Tests TLS, certificate renewal, and refusal of unsafe settings."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from remy_farm.files import FileError
from remy_proto.v1 import design_service_pb2 as messages
from remy_rpc.settings import Address, SettingsError, parse_listen_address
from remy_services.coordinator.server import ServerSettings
from remy_services.coordinator.tls import ServerTls
from services.tests.coordinator.running_server import Client, RunningServer, refusal, settings_for
from services.tests.stores.certificates import Certificates, make_certificates


def _made(folder: Path) -> Certificates:
    folder.mkdir()
    return make_certificates(folder)


def _tls(made: Certificates, *, client_ca: Path | None = None) -> ServerTls:
    return ServerTls(made.certificate, made.key, client_ca)


def _trusting(authority: Path, client: Certificates | None = None) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        authority.read_bytes(),
        None if client is None else client.key.read_bytes(),
        None if client is None else client.certificate.read_bytes(),
    )


def _code(server: RunningServer, credentials: grpc.ChannelCredentials | None) -> grpc.StatusCode:
    """Returns the status of a call over a new connection."""
    channel = server.channel(credentials)
    try:
        Client(channel).call("GetServerInfo", messages.GetServerInfoRequest())
    except grpc.RpcError as error:
        return refusal(error)[0]
    finally:
        channel.close()
    return grpc.StatusCode.OK


def test_only_clients_that_trust_the_ca_can_connect(tmp_path: Path) -> None:
    server_files, foreign_files = _made(tmp_path / "server"), _made(tmp_path / "foreign")
    with RunningServer(settings_for(tmp_path, tls=_tls(server_files))) as server:
        assert _code(server, _trusting(server_files.authority)) == grpc.StatusCode.OK
        assert _code(server, _trusting(foreign_files.authority)) == grpc.StatusCode.UNAVAILABLE
        assert _code(server, None) == grpc.StatusCode.UNAVAILABLE


def test_client_certificates_are_required_with_a_client_ca(tmp_path: Path) -> None:
    server_files, clients = _made(tmp_path / "server"), _made(tmp_path / "clients")
    settings = settings_for(tmp_path, tls=_tls(server_files, client_ca=clients.authority))
    with RunningServer(settings) as server:
        trusting = _trusting(server_files.authority, clients)
        assert _code(server, trusting) == grpc.StatusCode.OK
        for client in (None, server_files):
            refused = _code(server, _trusting(server_files.authority, client))
            assert refused == grpc.StatusCode.UNAVAILABLE


def test_renewed_certificates_are_used_for_new_connections(tmp_path: Path) -> None:
    first, second = _made(tmp_path / "first"), _made(tmp_path / "second")
    used = tmp_path / "used"
    shutil.copytree(tmp_path / "first", used)
    files = ServerTls(used / "cert.pem", used / "key.pem")
    with RunningServer(settings_for(tmp_path, tls=files)) as server:
        assert _code(server, _trusting(first.authority)) == grpc.StatusCode.OK

        # Only one of the two files is renewed, so the old pair stays in use.
        shutil.copy(second.certificate, used / "cert.pem")
        assert _code(server, _trusting(first.authority)) == grpc.StatusCode.OK

        shutil.copy(second.key, used / "key.pem")
        server.until(lambda: _code(server, _trusting(second.authority)) == grpc.StatusCode.OK)
        assert _code(server, _trusting(first.authority)) == grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("cert.pem", "does not contain a PEM certificate"),
        ("key.pem", "does not contain a PEM private key"),
    ],
)
def test_invalid_files_are_settings_errors(tmp_path: Path, damage: str, problem: str) -> None:
    made = _made(tmp_path / "made")
    (tmp_path / "made" / damage).write_text("nonsense")
    server = RunningServer(settings_for(tmp_path, tls=_tls(made)))
    with pytest.raises(SettingsError, match=problem), server:
        pass


def test_a_key_of_another_certificate_is_a_settings_error(tmp_path: Path) -> None:
    made, other = _made(tmp_path / "made"), _made(tmp_path / "other")
    files = ServerTls(made.certificate, other.key)
    server = RunningServer(settings_for(tmp_path, tls=files))
    with pytest.raises(SettingsError, match="is not the private key of the certificate"), server:
        pass


def test_missing_files_are_errors(tmp_path: Path) -> None:
    files = ServerTls(tmp_path / "none", tmp_path / "none")
    with (
        pytest.raises(FileError, match="cannot be read"),
        RunningServer(settings_for(tmp_path, tls=files)),
    ):
        pass


class TestOutsideOfLoopback:
    """Tests that non-loopback addresses require TLS and tokens, or --insecure."""

    @pytest.fixture
    def settings(self, tmp_path: Path) -> ServerSettings:
        return settings_for(tmp_path, listen=Address("0.0.0.0", 0))

    def test_tls_and_tokens_are_required(self, settings: ServerSettings, tmp_path: Path) -> None:
        tls, tokens = ServerTls(tmp_path, tmp_path), tmp_path
        with pytest.raises(SettingsError, match="--tls-cert and --tls-key and --tokens-file are"):
            settings.check()
        with pytest.raises(SettingsError, match=r"--tls-cert and --tls-key is missing"):
            replace(settings, tokens_file=tokens).check()
        with pytest.raises(SettingsError, match="--tokens-file is missing"):
            replace(settings, tls=tls).check()
        replace(settings, tls=tls, tokens_file=tokens).check()

    def test_insecure_accepts_the_risk(self, settings: ServerSettings) -> None:
        replace(settings, is_insecure=True).check()

    @pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "[::1]"])
    def test_loopback_addresses_need_neither(self, settings: ServerSettings, host: str) -> None:
        replace(settings, listen=parse_listen_address(f"{host}:0")).check()

    @pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "10.0.0.1", "farm.example.org"])
    def test_other_addresses_need_both(self, settings: ServerSettings, host: str) -> None:
        with pytest.raises(SettingsError, match="is reachable from other machines"):
            replace(settings, listen=parse_listen_address(f"{host}:0")).check()


@pytest.mark.parametrize(
    "text", ["", "host", ":1", "host:", "host:x", "host:65536", "::1:5", "a b:1"]
)
def test_invalid_addresses_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="must be HOST:PORT"):
        parse_listen_address(text)
