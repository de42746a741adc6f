"""Commands of members that are installed beside this one, and that it does not depend on.

A member announces a command with an entry point of the group `remy_farm.commands`: the command's
name, and the module whose `command` it is.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final

from remy_services.cli.lazy_group import CommandReference

_GROUP: Final = "remy_farm.commands"
_SECTION: Final = "Commands of other parts that are installed here"


def plugged_in_commands() -> dict[str, CommandReference]:
    """Those commands by name; nothing of them is loaded."""
    return {
        point.name: CommandReference(point.value, _summary(point.dist), section=_SECTION)
        for point in entry_points(group=_GROUP)
    }


def _summary(distribution: object) -> str:
    """What the member says that it is."""
    metadata = getattr(distribution, "metadata", {})
    return f"{metadata.get('Summary') or 'Installed without a description'}."
