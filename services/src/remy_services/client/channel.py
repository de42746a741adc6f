"""A gRPC channel to a coordinator."""

from __future__ import annotations

import grpc

from remy_services.client.errors import SettingsError
from remy_services.client.keepalive import CLIENT_OPTIONS
from remy_services.client.settings import ConnectionSettings, TlsSettings
from remy_services.files import FileError, read_file

_MOST_PEM_BYTES = 1 << 20
_MOST_MESSAGE_BYTES = 64 << 20
_USER_AGENT = "remy-farm"
# gRPC waits up to two minutes before it tries again to connect; a coordinator starts in seconds.
_FIRST_RECONNECT_MS = 200
_LAST_RECONNECT_MS = 2000


def open_channel(settings: ConnectionSettings) -> grpc.Channel:
    """A channel that connects when it is first used. Raises SettingsError for unusable files."""
    options: list[tuple[str, str | int]] = [
        *CLIENT_OPTIONS,
        ("grpc.primary_user_agent", _USER_AGENT),
        ("grpc.max_receive_message_length", _MOST_MESSAGE_BYTES),
        ("grpc.max_send_message_length", _MOST_MESSAGE_BYTES),
        ("grpc.initial_reconnect_backoff_ms", _FIRST_RECONNECT_MS),
        ("grpc.max_reconnect_backoff_ms", _LAST_RECONNECT_MS),
        # Requests are repeated here, where the coordinator's hints are understood.
        ("grpc.enable_retries", 0),
    ]
    if settings.address.is_loopback:
        options.append(("grpc.enable_http_proxy", 0))
    target = str(settings.address)
    if settings.tls is None:
        return grpc.insecure_channel(target, options)
    if settings.tls.server_name is not None:
        options.append(("grpc.ssl_target_name_override", settings.tls.server_name))
    return grpc.secure_channel(target, _credentials(settings.tls), options)


def _credentials(tls: TlsSettings) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        root_certificates=_read(tls.ca, "--tls-ca"),
        private_key=_read(tls.key, "--tls-key"),
        certificate_chain=_read(tls.cert, "--tls-cert"),
    )


def _read(path: str | None, flag: str) -> bytes | None:
    if path is None:
        return None
    try:
        content = read_file(path, limit=_MOST_PEM_BYTES)
    except FileError as error:
        raise SettingsError(f"{flag}: {error}") from error
    if b"-----BEGIN " not in content:
        raise SettingsError(f"{flag}: {path} is not a PEM file")
    return content
