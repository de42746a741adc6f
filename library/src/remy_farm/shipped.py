"""Finds and names the data that is installed with the library: RemyCCs, studies, sets of networks.

In a checkout the folder is `data/` of the repository.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

__all__ = [
    "DATA",
    "SCHEMAS",
    "rules_file",
    "shipped_schema",
    "shipped_table",
    "shipped_tables",
    "table_name",
]

#: Folder of installed data, with the folders `remyccs`, `studies`, `league`, `robustness`,
#: `schemas`.
DATA: Final = Path(str(resources.files("remy_farm"))) / "data"
#: The kinds of files that have a JSON schema.
SCHEMAS: Final = ("specification", "network", "study")


def shipped_schema(kind: str) -> Path:
    """Returns the path of the JSON schema of a kind of files, one of SCHEMAS."""
    return DATA / "schemas" / f"{kind}.json"


def shipped_tables() -> list[str]:
    """Returns the names of the RemyCCs that are installed, in alphabetical order."""
    return sorted(path.parent.name for path in (DATA / "remyccs").glob("*/remycc.json"))


def shipped_table(name: str) -> Path | None:
    """Returns the file of an installed RemyCC by its name; None if there is no such RemyCC."""
    return DATA / "remyccs" / name / "remycc.json" if name in shipped_tables() else None


def table_name(file: Path) -> str:
    """Returns the name of a RemyCC: its file's, or its folder's if all designs name the file alike.

    A design calls its table remycc.json, and `rules_file` those without a path model rules.json.
    """
    folder = file.absolute().parent.name
    match file.stem:
        case "remycc" if folder:
            return folder
        case "rules" if folder:
            return f"{folder} rules"
    return file.stem


def rules_file(table: Path) -> Path:
    """Returns the file with the rules alone of an installed RemyCC, without its path model.

    The rules of `remycc.json` are in `rules.json`, and those of `remycc-NAME.json` in
    `rules-NAME.json`.
    """
    return table.with_name("rules" + table.name.removeprefix("remycc"))
