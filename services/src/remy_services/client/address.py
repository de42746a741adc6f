"""Where a coordinator is."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from remy_services.client.errors import SettingsError

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 50051

_HOST_NAME = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_-]+)*\.?"
)
_BRACKETED = re.compile(r"\[(?P<host>[^\]]*)\](:(?P<port>.*))?")


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


def parse_address(text: str) -> Address:
    """The address in "HOST:PORT", "HOST" or "[IPV6]:PORT". Raises SettingsError."""
    bracketed = _BRACKETED.fullmatch(text)
    if bracketed is not None:
        host, port = bracketed["host"], bracketed["port"]
        is_host = _is_ip_address(host)
    else:
        host, colon, rest = text.partition(":")
        port = rest if colon else None
        is_host = _HOST_NAME.fullmatch(host) is not None
    if not is_host or (port is not None and not _is_port(port)):
        raise SettingsError(
            f"the coordinator's address {text[:300]!r} must be HOST:PORT, as in "
            "farm.example.org:50051 or [::1]:50051"
        )
    return Address(host, DEFAULT_PORT if port is None else int(port))


def _is_ip_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_port(text: str) -> bool:
    return re.fullmatch(r"[0-9]{1,5}", text) is not None and 1 <= int(text) <= 65535
