"""Writes the records again; see `tests.pinned.records`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.pinned.test_pinned import RECORDS

if __name__ == "__main__":
    known = {record.name: record for record in RECORDS}
    for name in sys.argv[1:] or known:
        with tempfile.TemporaryDirectory() as folder:
            known[name].write(Path(folder))
        print(known[name].path)
