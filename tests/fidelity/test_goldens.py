"""The simulator agrees with the reference implementation within the latter's noise."""

from __future__ import annotations

import pytest

from benchmarks.benchmark import Unavailable
from benchmarks.goldens import Golden, read_goldens


def _parameters() -> list[object]:
    try:
        return [pytest.param(golden, id=golden.name) for golden in read_goldens()]
    except Unavailable as reason:
        return [pytest.param(None, marks=pytest.mark.skip(reason=str(reason)), id="absent")]


@pytest.mark.parametrize("golden", _parameters())
def test_simulator_agrees_with_the_reference_implementation(golden: Golden) -> None:
    comparisons = golden.compare()
    assert len(comparisons) == 3
    for comparison in comparisons:
        assert comparison.is_within, comparison
