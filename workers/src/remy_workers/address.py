"""Network addresses in flags."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

#: What comes before the path of a socket of this machine, as gRPC writes it.
UNIX_PREFIX = "unix:"
# Of the path; more does not fit into what the system calls take.
_MOST_UNIX_BYTES = 107
_ADDRESS = re.compile(
    r"(\[(?P<ipv6>[0-9a-fA-F:.]+)\]|(?P<host>[A-Za-z0-9._-]+)):(?P<port>[0-9]{1,5})"
)


@dataclass(frozen=True)
class Address:
    """A host name or IP address, and a TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether what is sent there stays on this machine."""
        if self.host == "localhost":
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
    """The address in "HOST:PORT" or "unix:PATH". Raises ValueError with a sentence."""
    if not text.startswith(UNIX_PREFIX):
        return parse_address(text)
    path = text.removeprefix(UNIX_PREFIX)
    if not path or len(path.encode()) > _MOST_UNIX_BYTES:
        raise ValueError(
            f"{text[:300]!r} must be unix:PATH with a path of 1 to {_MOST_UNIX_BYTES} bytes"
        )
    return UnixSocket(path)


def parse_address(text: str) -> Address:
    """The address in "HOST:PORT" or "[IPV6]:PORT". Raises ValueError with a sentence."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"{text[:300]!r} must be HOST:PORT, as in 127.0.0.1:50051 or [::1]:50051")
    return Address(match["ipv6"] or match["host"], int(match["port"]))
