"""A gRPC channel to a coordinator, and the token that goes with a call."""

from __future__ import annotations

import re
from pathlib import Path

import grpc

from remy_workers.settings import SettingsError, TlsFiles, WorkerSettings

_MOST_MESSAGE_BYTES = 64 << 20
_MOST_FILE_BYTES = 1 << 20
# As often as coordinators allow it, and as soon as they give up themselves.
_PING_SECONDS = 20
_PING_TIMEOUT_SECONDS = 20
# What a header of a request may hold.
_TOKEN = re.compile(r"[!-~]+")

_Options = list[tuple[str, str | int]]


def open_channel(settings: WorkerSettings) -> grpc.Channel:
    """A channel that connects when it is first used. Raises SettingsError for unusable files."""
    target, options, credentials = _way(settings)
    if credentials is None:
        return grpc.insecure_channel(target, options)
    return grpc.secure_channel(target, credentials, options)


def open_aio_channel(settings: WorkerSettings) -> grpc.aio.Channel:
    """The same for the running event loop."""
    target, options, credentials = _way(settings)
    if credentials is None:
        return grpc.aio.insecure_channel(target, options)
    return grpc.aio.secure_channel(target, credentials, options)


def _way(settings: WorkerSettings) -> tuple[str, _Options, grpc.ChannelCredentials | None]:
    options: _Options = [
        ("grpc.keepalive_time_ms", _PING_SECONDS * 1000),
        ("grpc.keepalive_timeout_ms", _PING_TIMEOUT_SECONDS * 1000),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.max_receive_message_length", _MOST_MESSAGE_BYTES),
        ("grpc.max_send_message_length", _MOST_MESSAGE_BYTES),
        # Calls are repeated here, on a channel of their own each.
        ("grpc.enable_retries", 0),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    if settings.coordinator.is_loopback:
        options.append(("grpc.enable_http_proxy", 0))
    target = str(settings.coordinator)
    if settings.tls is None:
        return target, options, None
    if settings.tls.server_name is not None:
        options.append(("grpc.ssl_target_name_override", settings.tls.server_name))
    return target, options, _credentials(settings.tls)


def call_metadata(settings: WorkerSettings) -> tuple[tuple[str, str], ...]:
    """What goes with every call: the token, read anew. Raises SettingsError."""
    path = settings.token_file
    if path is None:
        return ()
    token = _read(path).decode("ascii", errors="replace").strip()
    if not _TOKEN.fullmatch(token):
        raise SettingsError(f"{path} must hold a token, of printable ASCII without spaces")
    return (("authorization", f"Bearer {token}"),)


def _credentials(tls: TlsFiles) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(
        root_certificates=_pem(tls.ca),
        private_key=_pem(tls.key),
        certificate_chain=_pem(tls.certificate),
    )


def _pem(path: Path | None) -> bytes | None:
    if path is None:
        return None
    content = _read(path)
    if b"-----BEGIN " not in content:
        raise SettingsError(f"{path} is not a PEM file")
    return content


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_FILE_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror or error}") from error
    if len(content) > _MOST_FILE_BYTES:
        raise SettingsError(f"{path} has more than {_MOST_FILE_BYTES} bytes")
    return content
