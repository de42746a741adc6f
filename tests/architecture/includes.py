"""Finds includes that point from a lower folder of the simulator's C++ sources to a higher one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_FOLDER_ROW = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)


class BadInclude(NamedTuple):
    """An include that the order of folders does not allow."""

    file: str
    included: str
    reason: str


def folder_order(readme: str) -> list[str]:
    """Returns the folders of simulator/src in the order of the README's table, lowest first."""
    return _FOLDER_ROW.findall(readme)


def find_bad_includes(sources: Path, order: Sequence[str]) -> list[BadInclude]:
    """Returns the includes of files below `sources` that are not of the same or a lower folder.

    Files and includes in folders that `order` does not list are reported as well. Includes in angle
    brackets are of the standard library and are not checked.
    """
    found = []
    for path in sorted(path for path in sources.rglob("*") if path.suffix in {".h", ".cc"}):
        file = path.relative_to(sources)
        folder = file.parts[0]
        for included in _INCLUDE.findall(path.read_text(encoding="utf-8")):
            target = Path(included).parts[0]
            if folder not in order:
                reason = f"{folder} is not one of {', '.join(order)}"
            elif target not in order or not (sources / included).is_file():
                reason = f"{included} is not a file in one of {', '.join(order)}"
            elif order.index(target) > order.index(folder):
                reason = f"{target} is above {folder}"
            else:
                continue
            found.append(BadInclude(str(file), included, reason))
    return found
