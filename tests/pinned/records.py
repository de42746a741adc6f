"""Promises to users as records: how they are kept and compared.

A record is what a promise comes to for fixed inputs, as JSON in `records/`: the bytes of designed
tables, the digests of evaluations, exit codes and the keys of JSON. The tests make each anew and
compare it line by line. Where a change is meant,

    python -m tests.pinned [NAME ...]

in the project's folder writes the records (all, or those named) again; the difference belongs into
the same commit, and into CHANGELOG.md, since users notice it. Wire formats are held to
`proto/baseline.binpb` by `make lint`.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = Path(__file__).parent / "records"


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
