"""Where a server listens."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

_ADDRESS = re.compile(
    r"(\[(?P<ipv6>[0-9a-fA-F:.]+)\]|(?P<host>[A-Za-z0-9._-]+)):(?P<port>[0-9]{1,5})"
)


@dataclass(frozen=True)
class ListenAddress:
    """A host or IP address, and a TCP port; 0: any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can call there."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def with_port(self, port: int) -> ListenAddress:
        """The same host."""
        return ListenAddress(self.host, port)


def parse_listen_address(text: str) -> ListenAddress:
    """The address in "HOST:PORT" or "[IPV6]:PORT". Raises ValueError with a sentence."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"{text!r} must be HOST:PORT, as in 127.0.0.1:50051 or [::1]:50051")
    return ListenAddress(match["ipv6"] or match["host"], int(match["port"]))
