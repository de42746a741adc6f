"""Rule tables for tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import strategies as st

from remy_services.remycc import RemyCC
from remy_simulator import RuleTable

REFERENCE = Path(os.environ.get("REMY_REFERENCE_DIR", "../shared/reference")) / "remyccs"
_ABSENT = f"no published RemyCCs in {REFERENCE}; set REMY_REFERENCE_DIR"

needs_reference = pytest.mark.skipif(not any(REFERENCE.glob("*.dna")), reason=_ABSENT)


def published() -> list[object]:
    """The published RemyCCs as parameters of a test; one that skips if they are not here."""
    paths = sorted(REFERENCE.glob("*.dna"))
    if paths:
        return [pytest.param(path, id=path.stem) for path in paths]
    return [pytest.param(REFERENCE, marks=pytest.mark.skip(reason=_ABSENT))]


@st.composite
def remyccs(draw: st.DrawFn, *, integral: bool = False) -> RemyCC:
    """RemyCCs of one to four signals after up to four splits; whole increments if `integral`."""
    signals = sorted(draw(st.sets(st.integers(0, 3), min_size=1)))
    increments = st.integers(-10, 256).map(float) if integral else st.floats(-10, 256)
    actions = st.tuples(st.floats(0, 10), increments, st.floats(0, 1000))
    table = RuleTable(signals, [([], draw(actions))])
    for _ in range(draw(st.integers(0, 4))):
        rule = draw(st.integers(0, table.rule_count - 1))
        lower, upper = table.region(rule)
        thresholds = []
        for axis in signals:
            value = draw(st.floats(lower[axis], upper[axis]))
            if lower[axis] < value < upper[axis]:
                thresholds.append((axis, value))
        if len(thresholds) == len(signals):
            table = table.split(rule, thresholds)
    for rule in range(table.rule_count):
        table = table.with_action(rule, draw(actions))
    return RemyCC(table, draw(st.sampled_from([b"", b"\x22\x00", b"\x2a\x03abc"])))
