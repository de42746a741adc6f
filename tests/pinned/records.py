"""Stores promises to users as records and compares them.

A record is a JSON file in `records/` with results for fixed inputs: digests of designed tables and
of evaluations, exit codes, and keys of JSON output. The tests compute each record again and compare
it line by line. After an intended change,

    python -m tests.pinned [NAME ...]

in the project's directory rewrites the records (all, or those named). The difference belongs in the
same commit and in CHANGELOG.md, because users notice it. `make lint` compares wire formats with
`proto/baseline.binpb`.
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
    """A record: its name, and the function that computes it in an empty folder."""

    name: str
    make: Callable[[Path], Any]

    @property
    def path(self) -> Path:
        """The record's file."""
        return _FOLDER / f"{self.name}.json"

    def write(self, folder: Path) -> None:
        """Computes the record and replaces its file."""
        self.path.write_text(_text(self.make(folder)), encoding="utf-8")

    def differences(self, folder: Path) -> str:
        """Returns the diff between the file and the record computed now; empty if equal."""
        pinned = self.path.read_text(encoding="utf-8").splitlines()
        computed = _text(self.make(folder)).splitlines()
        lines = difflib.unified_diff(pinned, computed, "pinned", "computed", n=4, lineterm="")
        return "\n".join(lines)


def _text(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def digest(data: bytes) -> str:
    """Returns the SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def digest_of_json(value: Any) -> str:
    """Returns 16 hexadecimal digits of the SHA-256 of a JSON value, whatever the order of keys."""
    return digest(json.dumps(value, sort_keys=True).encode())[:16]
