"""Rule tables for tests: published ones, one written by hand, and random ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import strategies as st

from remy_farm.remycc import RemyCC
from remy_proto.v1 import rule_table_pb2
from remy_simulator import RuleTable

# Without REMY_REFERENCE_DIR this is a path below a file, which never exists.
REFERENCE = Path(os.environ.get("REMY_REFERENCE_DIR") or os.devnull, "remyccs")
_ABSENT = "REMY_REFERENCE_DIR names no folder whose subfolder remyccs holds published RemyCCs"

needs_reference = pytest.mark.skipif(not any(REFERENCE.glob("*.dna")), reason=_ABSENT)


def published() -> list[object]:
    """Returns the published RemyCCs as test parameters; a single skipped one if absent."""
    paths = sorted(REFERENCE.glob("*.dna"))
    if paths:
        return [pytest.param(path, id=path.stem) for path in paths]
    return [pytest.param(REFERENCE, marks=pytest.mark.skip(reason=_ABSENT))]


def six_scale_free_rules() -> RuleTable:
    """Returns a hand-written table: a start rule, and rules that pace at 0.9 of the interval.

    Both EWMAs start at 0, so that rec_ewma is 1 - (7/8)^k of the interval after k intervals. The
    rules correct for this by age, with thresholds at 5, 10, 20 and 40 intervals. Windows converge
    to 110 % of the path.
    """

    def ratio(age: int) -> float:
        return (1 - (255 / 256) ** age) / (1 - 0.875**age)

    def rule(age: int) -> tuple[list[tuple[int, float]], tuple[float, float, float]]:
        measured = 1 - 0.875**age
        return ([], (0.7, 33 * measured, 0.9 / measured))

    nodes: list[tuple[list[tuple[int, float]], tuple[float, float, float]]] = [
        ([(2, 0.5)], (1.0, 1.0, 1.0)),
        ([], (0.0, 30.0, 0.01875)),
    ]
    for end, middle in ((5, 3), (10, 7), (20, 14), (40, 28)):
        nodes += [([(3, ratio(end))], (1.0, 1.0, 1.0)), rule(middle)]
    nodes.append(rule(1000))
    return RuleTable([0, 2, 3], nodes, rules=rule_table_pb2.RULES_SCALE_FREE)


@st.composite
def remyccs(
    draw: st.DrawFn, *, integral: bool = False, rules: int = rule_table_pb2.RULES_ABSOLUTE
) -> RemyCC:
    """Draws RemyCCs of one to four signals with up to four splits; `integral`: whole increments."""
    axes = st.integers(0, 3)
    signals = sorted(draw(st.sets(axes, min_size=1)))
    increments = st.integers(-10, 256).map(float) if integral else st.floats(-10, 256)
    actions = st.tuples(st.floats(0, 10), increments, st.floats(0, 1000))
    table = RuleTable(signals, [([], draw(actions))], rules=rules)
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
