"""docs/results/limits.md has the measured values."""

from __future__ import annotations

import pytest

from benchmarks.limits import ENTRANTS, LIMITS, Limit, measure_limit
from benchmarks.programs import ROOT

_ROWS = {
    cells[0].strip("` "): [cell.strip() for cell in cells[2:]]
    for line in (ROOT / "docs" / "results" / "limits.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| `")
    for cells in [line.strip("|").split("|")]
}


def test_every_limit_has_a_row() -> None:
    assert list(_ROWS) == [limit.name for limit in LIMITS]


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.name)
def test_row_has_the_measured_values(limit: Limit) -> None:
    assert _ROWS[limit.name] == [measure_limit(limit, each) for each in ENTRANTS.values()]
