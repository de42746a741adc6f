"""The version of the wire format between clients and coordinators.

A client sends its version in the metadata of each call, and a coordinator in the initial metadata
of each response. Both reject another version, whose messages could mean something else. Programs
from before version 2 send none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: Increment it if an older client or coordinator would misunderstand a message.
WIRE_FORMAT: Final = 2
WIRE_FORMAT_KEY: Final = "remy-farm-wire-format"
#: Metadata that this side sends.
WIRE_FORMAT_METADATA: Final = ((WIRE_FORMAT_KEY, str(WIRE_FORMAT)),)


def peer_wire_format(metadata: Iterable[tuple[str, str | bytes]] | None) -> str | None:
    """Returns the peer's version; None if it sent none, as before version 2."""
    for key, value in metadata or ():
        if key == WIRE_FORMAT_KEY:
            return value if isinstance(value, str) else value.decode("ascii", "replace")
    return None


def is_newer(peer_version: str | None) -> bool:
    """Whether the peer's version is newer than this side's."""
    return (
        peer_version is not None
        and peer_version.isascii()
        and peer_version.isdigit()
        and int(peer_version) > WIRE_FORMAT
    )
