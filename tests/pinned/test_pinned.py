"""What must not change by accident does not; `records.py` says how to change it on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chart.rendering import needs_helm
from tests.pinned import commands, messages, results, surfaces
from tests.pinned.records import Record

CHART = surfaces.CHART_RECORD
RECORDS = (*results.RECORDS, *commands.RECORDS, *messages.RECORDS, *surfaces.RECORDS)


@pytest.mark.parametrize(
    "record",
    [*RECORDS, pytest.param(CHART, marks=needs_helm)],
    ids=lambda record: record.name,
)
def test_it_is_as_it_was(record: Record, tmp_path: Path) -> None:
    differences = record.differences(tmp_path)
    assert not differences, (
        f"{record.path.name} differs (meant? python -m tests.pinned {record.name}):\n{differences}"
    )


def test_every_record_is_made_by_something() -> None:
    kept = {path.stem for path in CHART.path.parent.iterdir()}
    assert kept <= {record.name for record in (*RECORDS, CHART)}
