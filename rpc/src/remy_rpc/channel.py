"""A gRPC channel to a coordinator: keepalive, message sizes, TLS, and who is at the other end."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Final

import grpc

from remy_rpc.settings import Address, SettingsError, TlsFiles, UnixSocket, read_limited

CLIENT_PING_SECONDS: Final = 20
PING_TIMEOUT_SECONDS: Final = 20
#: A coordinator must allow pings as often as clients send them, or it would take them for an attack
#: and close the connection. With a margin for pings that queue up on the way.
SERVER_ALLOWS_PING_SECONDS: Final = 10
MAX_MESSAGE_BYTES: Final = 64 << 20
#: What is wrong where one side is set to plain text and the other `speaks_tls`.
PLAINTEXT_TO_TLS: Final = (
    "it speaks TLS, and this side is set to plain text; name the authority of its certificate with "
    "--tls-ca, and drop --insecure"
)

# How both ends of a connection notice that the other has vanished: a client pings while a call is
# open, and gives up as soon as coordinators do.
_KEEPALIVE: Final = (
    ("grpc.keepalive_time_ms", CLIENT_PING_SECONDS * 1000),
    ("grpc.keepalive_timeout_ms", PING_TIMEOUT_SECONDS * 1000),
    ("grpc.http2.max_pings_without_data", 0),
)
CLIENT_OPTIONS: Final = (
    *_KEEPALIVE,
    ("grpc.keepalive_permit_without_calls", 0),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # gRPC waits up to two minutes before it connects again; a coordinator starts in seconds.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # Calls are repeated by `retry`, where the coordinator's hints are understood.
    ("grpc.enable_retries", 0),
    # A channel connects for itself: another one's failed attempts are none of its business.
    ("grpc.use_local_subchannel_pool", 1),
)
SERVER_OPTIONS: Final = (
    *_KEEPALIVE,
    ("grpc.http2.min_recv_ping_interval_without_data_ms", SERVER_ALLOWS_PING_SECONDS * 1000),
)


def open_channel(
    address: Address | UnixSocket, tls: TlsFiles | None, *, user_agent: str
) -> grpc.Channel:
    """A channel that connects when it is first used; `tls` None: in plain text.

    Raises SettingsError for files that cannot be used.
    """
    options: list[tuple[str, str | int]] = [
        *CLIENT_OPTIONS,
        ("grpc.primary_user_agent", user_agent),
    ]
    if address.is_loopback:
        options.append(("grpc.enable_http_proxy", 0))
    if tls is None:
        return grpc.insecure_channel(str(address), options)
    if tls.server_name is not None:
        options.append(("grpc.ssl_target_name_override", tls.server_name))
    credentials = grpc.ssl_channel_credentials(
        root_certificates=_pem(tls.ca, "--tls-ca"),
        private_key=_pem(tls.key, "--tls-key"),
        certificate_chain=_pem(tls.cert, "--tls-cert"),
    )
    return grpc.secure_channel(str(address), credentials, options)


def _pem(source: Path | bytes | None, flag: str) -> bytes | None:
    if not isinstance(source, Path):
        return source
    try:
        content = read_limited(source)
    except SettingsError as error:
        raise SettingsError(f"{flag}: {error}") from error
    if b"-----BEGIN " not in content:
        raise SettingsError(f"{flag}: {source} is not a PEM file")
    return content


def speaks_tls(address: Address | UnixSocket, *, timeout_seconds: float = 2.0) -> bool:
    """Whether what listens at an address answers a TLS hello with another, whatever it shows.

    gRPC says of a TLS server that was spoken to in plain text no more than that it hung up.
    """
    if isinstance(address, UnixSocket):
        return False
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        with (
            socket.create_connection((address.host, address.port), timeout=timeout_seconds) as raw,
            context.wrap_socket(raw, server_hostname=address.host),
        ):
            return True
    except (OSError, ValueError):
        return False
