"""Finds the data that is installed with the library: RemyCCs, studies, sets of networks.

In a checkout the folder is `data/` of the repository.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

__all__ = [
    "DATA",
    "SCHEMAS",
    "shipped_schema",
    "shipped_table",
    "shipped_tables",
]

#: The folder with a folder each for `remyccs`, `studies`, `league`, `robustness` and `schemas`.
DATA: Final = Path(str(resources.files("remy_farm"))) / "data"
#: The kinds of files that have a JSON schema.
SCHEMAS: Final = ("specification", "network", "study")


def shipped_schema(kind: str) -> Path:
    """The JSON schema of files of a kind, one of SCHEMAS."""
    return DATA / "schemas" / f"{kind}.json"


def shipped_tables() -> list[str]:
    """Names of the designed RemyCCs, in alphabetical order."""
    return sorted(path.parent.name for path in (DATA / "remyccs").glob("*/remycc.json"))


def shipped_table(name: str) -> Path | None:
    """The file of a designed RemyCC by its name; None where there is none of this name."""
    return DATA / "remyccs" / name / "remycc.json" if name in shipped_tables() else None
