"""Where a coordinator is and how both sides know each other: address, TLS files, bearer token."""

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
#: What comes before the path of a socket of this machine, as gRPC writes it.
UNIX_PREFIX = "unix:"

# Of the path; more does not fit into what the system calls take.
_MOST_UNIX_BYTES = 107
_MOST_FILE_BYTES = 1 << 20
_MOST_TOKEN_BYTES = 16 << 10
_HOST_NAME = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_-]+)*\.?"
)
_HOST_AND_PORT = re.compile(r"(\[(?P<ip>[^\]]*)\]|(?P<name>[^:\[\]]*))(:(?P<port>[0-9]{1,5}))?")
# What a header of a request may hold.
_TOKEN = re.compile(r"[!-~]+")


class SettingsError(Exception):
    """A setting cannot be used. One sentence for the user, which names the setting."""


@dataclass(frozen=True)
class Address:
    """A host and a TCP port."""

    #: A name, or an IP address without brackets.
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether what is sent there does not leave this machine."""
        if self.host.rstrip(".").lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True)
class UnixSocket:
    """A socket of this machine, in its file system."""

    path: str

    def __str__(self) -> str:
        return f"{UNIX_PREFIX}{self.path}"

    @property
    def is_loopback(self) -> bool:
        """What is sent there stays on this machine."""
        return True


def parse_coordinator(text: str) -> Address | UnixSocket:
    """Whom a worker calls: "HOST:PORT", "[IPV6]:PORT" or "unix:PATH". Raises SettingsError."""
    if text.startswith(UNIX_PREFIX):
        path = text.removeprefix(UNIX_PREFIX)
        if not path or len(path.encode()) > _MOST_UNIX_BYTES:
            raise SettingsError(
                f"{text[:300]!r} must be unix:PATH with a path of 1 to {_MOST_UNIX_BYTES} bytes"
            )
        return UnixSocket(path)
    return parse_address(text, default_port=None)


def parse_address(text: str, *, default_port: int | None = DEFAULT_PORT) -> Address:
    """The address of a coordinator in "HOST:PORT", "[IPV6]:PORT" or, with a default port, "HOST".

    Raises SettingsError.
    """
    address = _parsed(text, default_port=default_port)
    if address is None or address.port == 0:
        raise SettingsError(
            f"the coordinator's address {text[:300]!r} must be HOST:PORT, as in "
            "farm.example.org:50051 or [::1]:50051"
        )
    return address


def parse_listen_address(text: str) -> Address:
    """Where to listen: "HOST:PORT" or "[IPV6]:PORT", where port 0 is any that is free.

    Raises SettingsError.
    """
    address = _parsed(text, default_port=None)
    if address is None:
        raise SettingsError(
            f"{text[:300]!r} must be HOST:PORT, as in 127.0.0.1:50051 or [::1]:50051"
        )
    return address


def _parsed(text: str, *, default_port: int | None) -> Address | None:
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
    """How to know the coordinator, and how it is to know this side.

    Each is the path of a PEM file, or its content where there is no file.
    """

    #: Authorities that may have signed the coordinator's certificate; None: those that gRPC trusts.
    ca: Path | bytes | None = None
    #: Of this side, where the coordinator asks for a certificate; both or none.
    cert: Path | bytes | None = None
    key: Path | bytes | None = None
    #: The name in the coordinator's certificate, where it is reached by another.
    server_name: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing."""
        return not any((self.ca, self.cert, self.key, self.server_name))


def tls_settings(
    files: TlsFiles, *, insecure: bool, coordinator: Address | UnixSocket
) -> TlsFiles | None:
    """TLS unless it is refused, or needless and not asked for. Raises SettingsError."""
    if insecure and not files.is_empty:
        raise SettingsError(
            "--insecure and the --tls flags exclude each other: the one is for plain text, the "
            "others are for TLS"
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
    """A bearer token and where it was found; what is printed of it never shows the token.

    It is read from a file or the environment only: anybody on a machine may list the flags of its
    processes.
    """

    text: str = field(repr=False)
    #: As in "REMY_FARM_TOKEN" or the name of a file.
    source: str

    def __post_init__(self) -> None:
        if not self.text:
            raise SettingsError(f"the token in {self.source} is empty")
        if not _TOKEN.fullmatch(self.text):
            raise SettingsError(
                f"the token in {self.source} has a character that tokens do not have; printable "
                "ASCII without spaces is allowed"
            )


def read_token_file(path: Path) -> Token:
    """The token that is all that a file holds; space around it does not count.

    Raises SettingsError.
    """
    try:
        text = read_limited(path, _MOST_TOKEN_BYTES).decode("ascii")
    except SettingsError as error:
        raise SettingsError(f"the token file {error}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"the token file {path} does not hold a token, but other data"
        ) from error
    return Token(text.strip(), str(path))


def call_metadata(token: Token | Path | None) -> Sequence[tuple[str, str]]:
    """What goes with every call; a token that is in a file is read anew. Raises SettingsError."""
    if token is None:
        return ()
    found = read_token_file(token) if isinstance(token, Path) else token
    return (("authorization", f"Bearer {found.text}"),)


def read_limited(path: Path, limit: int = _MOST_FILE_BYTES) -> bytes:
    """The content of a file of at most `limit` bytes. Raises SettingsError."""
    try:
        content = read_begin(path, limit + 1)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror or error}") from error
    if len(content) > limit:
        raise SettingsError(f"{path} has more than {limit} bytes")
    return content
