"""Open a gRPC channel to a coordinator, with keepalive, message limits and TLS."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Final

import grpc

from remy_rpc.settings import Address, SettingsError, TlsFiles, UnixSocket, read_limited

CLIENT_PING_SECONDS: Final = 20
PING_TIMEOUT_SECONDS: Final = 20
#: The shortest interval between pings that a coordinator accepts; it closes connections that ping
#: more often. Shorter than the clients' interval, since pings may queue up in the network.
SERVER_ALLOWS_PING_SECONDS: Final = 10
MAX_MESSAGE_BYTES: Final = 64 << 20
#: The error if this side uses plain text but the other `speaks_tls`.
PLAINTEXT_TO_TLS: Final = (
    "the coordinator uses TLS, but this side uses plain text; name the CA of its certificate with "
    "--tls-ca and drop --insecure"
)

# Keepalive lets each end notice that the other has vanished. A client pings while a call is open,
# and both ends use the same timeout.
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
    # By default gRPC waits up to two minutes to reconnect; a coordinator restarts in seconds.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2000),
    # `retry` repeats calls instead, since it respects the coordinator's hints.
    ("grpc.enable_retries", 0),
    # Do not share connections, so that a new channel does not wait for another one's back-off.
    ("grpc.use_local_subchannel_pool", 1),
)
SERVER_OPTIONS: Final = (
    *_KEEPALIVE,
    ("grpc.http2.min_recv_ping_interval_without_data_ms", SERVER_ALLOWS_PING_SECONDS * 1000),
)


def open_channel(
    address: Address | UnixSocket, tls: TlsFiles | None, *, user_agent: str
) -> grpc.Channel:
    """Returns a channel that connects on first use; in plain text if `tls` is None.

    Raises SettingsError if a TLS file cannot be used.
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
    """Whether the server at an address completes a TLS handshake, with any certificate.

    Used to explain a failed call: if a client uses plain text with a TLS server, gRPC reports only
    that the connection was closed.
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
