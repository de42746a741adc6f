"""What must not change by accident: how records are kept, made comparable and compared.

A record is what some surface that users see comes to for fixed inputs, as JSON in `records/`. Each
is made anew by the tests and compared line by line. Where a change is meant,

    python -m tests.pinned [NAME ...]

in the project's folder writes the records (all, or those named) again; the difference belongs into
the same commit, and into CHANGELOG.md if users notice it.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = Path(__file__).parent / "records"

#: Values that differ from one run to the next, by their key.
_VOLATILE_KEYS: Final = frozenset(
    {
        *("wall_seconds", "cpu_seconds", "eta_seconds", "unix_seconds", "estimated_cost"),
        *("evaluations_per_second", "packets_per_second"),
        *("create_time", "start_time", "end_time", "time", "coordinator"),
        *("version", "simulator_version", "python"),
    }
)
#: The same within sentences.
_VOLATILE_TEXT: Final = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?"), "(time)"),
    (re.compile(r"127\.0\.0\.1:\d{2,}"), "(address)"),
    (re.compile(r"\b[0-9a-f]{18}\b"), "(id)"),
)


@dataclass(frozen=True)
class Record:
    """One record: its name, and what makes it in an empty folder."""

    name: str
    make: Callable[[Path], Any]

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return _FOLDER / f"{self.name}.json"

    def write(self, folder: Path) -> None:
        """Replaces what is kept."""
        self.path.write_text(_text(self.make(folder)), encoding="utf-8")

    def differences(self, folder: Path) -> str:
        """How what is made now differs from what is kept; empty if it does not."""
        kept = self.path.read_text(encoding="utf-8").splitlines()
        made = _text(self.make(folder)).splitlines()
        lines = difflib.unified_diff(kept, made, "kept", "made", n=4, lineterm="")
        return "\n".join(lines)


def _text(tree: Any) -> str:
    return json.dumps(tree, indent=1, ensure_ascii=False) + "\n"


def digest(data: bytes) -> str:
    """SHA-256, as records have it."""
    return hashlib.sha256(data).hexdigest()


def digest_of_tree(tree: Any) -> str:
    """The same of a JSON tree, whatever the order of its keys; short."""
    return digest(json.dumps(tree, sort_keys=True).encode())[:16]


def without_volatile(tree: Any, names: Mapping[str, str]) -> Any:
    """The tree with a word in place of all that differs from run to run.

    `names` gives further words for whole or partial texts, such as ids.
    """
    if isinstance(tree, dict):
        return {
            without_volatile(key, names): "(volatile)"
            if key in _VOLATILE_KEYS
            else without_volatile(value, names)
            for key, value in tree.items()
        }
    if isinstance(tree, list):
        return [without_volatile(each, names) for each in tree]
    if isinstance(tree, str):
        for found, word in names.items():
            tree = tree.replace(found, word)
        for pattern, word in _VOLATILE_TEXT:
            tree = pattern.sub(word, tree)
    return tree
