"""Connection settings: the coordinator's address, TLS files and the bearer token."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from remy_proto.files import read_begin

__all__ = [
    "DEFAULT_HOST",
    "DEFAULT_PORT",
    "UNIX_PREFIX",
    "Address",
    "SettingsError",
    "TlsFiles",
    "Token",
    "UnixSocket",
    "call_metadata",
    "parse_address",
    "parse_coordinator",
    "parse_listen_address",
    "read_limited",
    "read_token_file",
    "tls_settings",
]

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 50051
#: Prefix of the path of a Unix socket, as in gRPC.
UNIX_PREFIX = "unix:"

# Longest path of a Unix socket on Linux.
_MAX_UNIX_PATH_BYTES = 107
_MAX_FILE_BYTES = 1 << 20
_MAX_TOKEN_BYTES = 16 << 10
_HOST_NAME = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_-]+)*\.?"
)
_HOST_AND_PORT = re.compile(r"(\[(?P<ip>[^\]]*)\]|(?P<name>[^:\[\]]*))(:(?P<port>[0-9]{1,5}))?")
# The characters allowed in an HTTP header.
_TOKEN = re.compile(r"[!-~]+")


class SettingsError(Exception):
    """A setting is invalid. The message is one sentence for the user that names the setting."""


@dataclass(frozen=True)
class Address:
    """A host and a TCP port."""

    #: A host name, or an IP address without brackets.
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether the address is on this machine's loopback interface."""
        if self.host.rstrip(".").lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True)
class UnixSocket:
    """A Unix domain socket on this machine."""

    path: str

    def __str__(self) -> str:
        return f"{UNIX_PREFIX}{self.path}"

    @property
    def is_loopback(self) -> bool:
        """Always true: traffic of a Unix socket stays on this machine."""
        return True


def parse_coordinator(text: str) -> Address | UnixSocket:
    """Parses a worker's coordinator: "HOST:PORT", "[IPV6]:PORT" or "unix:PATH".

    Raises SettingsError.
    """
    if text.startswith(UNIX_PREFIX):
        path = text.removeprefix(UNIX_PREFIX)
        if not path or len(path.encode()) > _MAX_UNIX_PATH_BYTES:
            raise SettingsError(
                f"{text[:300]!r} must be unix:PATH with a path of 1 to {_MAX_UNIX_PATH_BYTES} bytes"
            )
        return UnixSocket(path)
    return parse_address(text, default_port=None)


def parse_address(text: str, *, default_port: int | None = DEFAULT_PORT) -> Address:
    """Parses "HOST:PORT", "[IPV6]:PORT" or, if there is a default port, "HOST".

    Raises SettingsError.
    """
    address = _parse(text, default_port=default_port)
    if address is None or address.port == 0:
        raise SettingsError(
            f"the coordinator's address {text[:300]!r} must be HOST:PORT, as in "
            "farm.example.org:50051 or [::1]:50051"
        )
    return address


def parse_listen_address(text: str) -> Address:
    """Parses an address to listen at, "HOST:PORT" or "[IPV6]:PORT"; port 0 means any free port.

    Raises SettingsError.
    """
    address = _parse(text, default_port=None)
    if address is None:
        raise SettingsError(
            f"{text[:300]!r} must be HOST:PORT, as in 127.0.0.1:50051 or [::1]:50051"
        )
    return address


def _parse(text: str, *, default_port: int | None) -> Address | None:
    match = _HOST_AND_PORT.fullmatch(text)
    if match is None:
        return None
    if match["ip"] is not None:
        try:
            ipaddress.ip_address(match["ip"])
        except ValueError:
            return None
    elif not _HOST_NAME.fullmatch(match["name"]):
        return None
    port = default_port if match["port"] is None else int(match["port"])
    if port is None or port > 65535:
        return None
    return Address(match["ip"] or match["name"], port)


@dataclass(frozen=True)
class TlsFiles:
    """The certificates that authenticate the coordinator and this side.

    Each is the path of a PEM file or the content of one.
    """

    #: CA certificates that verify the coordinator's certificate; None: gRPC's default roots.
    ca: Path | bytes | None = None
    #: Client certificate and key, for a coordinator that requires one; set both or neither.
    cert: Path | bytes | None = None
    key: Path | bytes | None = None
    #: The name in the coordinator's certificate, if it differs from the host.
    server_name: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no field is set."""
        return not any((self.ca, self.cert, self.key, self.server_name))


def tls_settings(
    files: TlsFiles, *, insecure: bool, coordinator: Address | UnixSocket
) -> TlsFiles | None:
    """Decides between TLS and plain text (None).

    Plain text is used with `insecure`, and on loopback if no TLS flag is given. Raises
    SettingsError if the flags contradict each other.
    """
    if insecure and not files.is_empty:
        raise SettingsError(
            "--insecure and the --tls flags exclude each other: --insecure means plain text, the "
            "others mean TLS"
        )
    if (files.cert is None) != (files.key is None):
        missing = "--tls-key" if files.key is None else "--tls-cert"
        raise SettingsError(
            f"a client certificate needs both --tls-cert and --tls-key; {missing} is missing"
        )
    if insecure or (coordinator.is_loopback and files.is_empty):
        return None
    return files


@dataclass(frozen=True)
class Token:
    """A bearer token and its source; its `repr` hides the token.

    Tokens come only from a file or the environment, never from a flag: every user of a machine can
    list the flags of its processes.
    """

    text: str = field(repr=False)
    #: Name of the environment variable or file, for error messages.
    source: str

    def __post_init__(self) -> None:
        if not self.text:
            raise SettingsError(f"the token in {self.source} is empty")
        if not _TOKEN.fullmatch(self.text):
            raise SettingsError(
                f"the token in {self.source} has a character that is not allowed; use printable "
                "ASCII without spaces"
            )


def read_token_file(path: Path) -> Token:
    """Reads a token from a file that contains nothing else but white space.

    Raises SettingsError.
    """
    try:
        text = read_limited(path, _MAX_TOKEN_BYTES).decode("ascii")
    except SettingsError as error:
        raise SettingsError(f"the token file {error}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"the token file {path} does not contain a token: it is not ASCII text"
        ) from error
    return Token(text.strip(), str(path))


def call_metadata(token: Token | Path | None) -> Sequence[tuple[str, str]]:
    """Returns the metadata of a call. A token file is read at every call. Raises SettingsError."""
    if token is None:
        return ()
    found = read_token_file(token) if isinstance(token, Path) else token
    return (("authorization", f"Bearer {found.text}"),)


def read_limited(path: Path, limit: int = _MAX_FILE_BYTES) -> bytes:
    """Reads a file of at most `limit` bytes. Raises SettingsError if it is longer or unreadable."""
    try:
        content = read_begin(path, limit + 1)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror or error}") from error
    if len(content) > limit:
        raise SettingsError(f"{path} has more than {limit} bytes")
    return content
