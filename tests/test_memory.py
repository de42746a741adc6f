"""A simulation's memory does not grow with its length."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.memory import peak_mib
from benchmarks.tables import write_eight_rules, write_flood

_LIMIT_MIB = 100


def test_long_simulation_needs_less_memory_than_the_limit(tmp_path: Path) -> None:
    assert peak_mib(write_eight_rules(tmp_path), 10_000) < _LIMIT_MIB


def test_long_simulation_needs_as_much_memory_as_a_short_one(tmp_path: Path) -> None:
    flood = write_flood(tmp_path)
    short, long = peak_mib(flood, 100), peak_mib(flood, 1000)
    assert long == pytest.approx(short, abs=4)
    assert long < _LIMIT_MIB
