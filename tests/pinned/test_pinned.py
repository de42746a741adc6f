"""Promises to users are kept; `records.py` says how to change one on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pinned import commands, results, specimens
from tests.pinned.records import Record

RECORDS = (*results.RECORDS, *commands.RECORDS, *specimens.RECORDS)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_it_is_as_it_was(record: Record, tmp_path: Path) -> None:
    differences = record.differences(tmp_path)
    assert not differences, (
        f"{record.path.name} differs (meant? python -m tests.pinned {record.name}):\n{differences}"
    )


def test_every_record_is_made_by_something() -> None:
    kept = {path.stem for path in RECORDS[0].path.parent.iterdir()}
    assert kept == {record.name for record in RECORDS}
