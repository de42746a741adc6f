"""Results equal the pinned records; `records.py` explains how to change one intentionally."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pinned import commands, results, specimens
from tests.pinned.records import Record

RECORDS = (*results.RECORDS, *commands.RECORDS, *specimens.RECORDS)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_record_is_unchanged(record: Record, tmp_path: Path) -> None:
    differences = record.differences(tmp_path)
    assert not differences, (
        f"{record.path.name} differs; after an intended change run python -m tests.pinned "
        f"{record.name}:\n{differences}"
    )


def test_every_record_file_has_a_record() -> None:
    files = {path.stem for path in RECORDS[0].path.parent.iterdir()}
    assert files == {record.name for record in RECORDS}
