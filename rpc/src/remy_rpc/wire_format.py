"""The version of the wire format between clients and coordinators, which every call tells.

A client tells it in the metadata of its calls, and a coordinator in the metadata that its answers
begin with. Neither goes on with another version, whose messages may mean something else; those of
before 2 tell none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: Is counted up where a client of before, or a coordinator, would misunderstand a message.
WIRE_FORMAT: Final = 2
WIRE_FORMAT_KEY: Final = "remy-farm-wire-format"
#: What this side tells.
WIRE_FORMAT_METADATA: Final = ((WIRE_FORMAT_KEY, str(WIRE_FORMAT)),)


def peer_wire_format(metadata: Iterable[tuple[str, str | bytes]] | None) -> str | None:
    """The version that the other side tells; None if it tells none, as those of before 2."""
    for key, value in metadata or ():
        if key == WIRE_FORMAT_KEY:
            return value if isinstance(value, str) else value.decode("ascii", "replace")
    return None


def is_newer(told: str | None) -> bool:
    """Whether the other side is newer than this one."""
    return told is not None and told.isascii() and told.isdigit() and int(told) > WIRE_FORMAT
