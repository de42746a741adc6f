"""Where a server listens."""

from __future__ import annotations

import re

from remy_services.client.address import Address

_ADDRESS = re.compile(
    r"(\[(?P<ipv6>[0-9a-fA-F:.]+)\]|(?P<host>[A-Za-z0-9._-]+)):(?P<port>[0-9]{1,5})"
)


def parse_listen_address(text: str) -> Address:
    """The address in "HOST:PORT" or "[IPV6]:PORT", where port 0 is any that is free. Raises
    ValueError with a sentence."""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"{text!r} must be HOST:PORT, as in 127.0.0.1:50051 or [::1]:50051")
    return Address(match["ipv6"] or match["host"], int(match["port"]))
