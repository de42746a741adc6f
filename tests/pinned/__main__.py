"""Writes the pinned records anew; see `tests.pinned.records`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.pinned.test_pinned import RECORDS

if __name__ == "__main__":
    records = {record.name: record for record in RECORDS}
    for name in sys.argv[1:] or records:
        with tempfile.TemporaryDirectory() as folder:
            records[name].write(Path(folder))
        print(records[name].path)
