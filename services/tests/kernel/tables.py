"""Tables that the kernel's tests export."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from benchmarks.programs import ROOT
from remy_services.kernel.fixed_point import IntegerTable
from remy_services.remycc import read_remycc
from remy_simulator import RuleTable

GOLDEN = Path(__file__).parent / "golden"
SCALE_FREE = ROOT / "examples" / "remyccs" / "general-purpose-noise" / "remycc.json"
ABSOLUTE = ROOT / "tests" / "data" / "remyccs-absolute" / "general-purpose-noise" / "remycc.json"
EXACT_CLOCKS = ROOT / "tests" / "data" / "remyccs-absolute" / "general-purpose-delta1"

needs_c = pytest.mark.skipif(
    not os.environ.get("CC") and not any(map(shutil.which, ("cc", "gcc", "clang"))),
    reason="there is no C compiler",
)


def absolute_rules() -> RuleTable:
    """Five rules in ms, with a negative increment, and a threshold on the lower bound."""
    nodes = [
        ([(0, 1.5), (2, 1.0625)], (1.0, 1.0, 3.0)),
        ([], (0.9, 2.0, 1.0)),
        ([], (0.75, -3.0, 0.25)),
        ([], (1.0, 1.0, 0.0)),
        ([(1, 0.0)], (1.0, 1.0, 3.0)),
        ([], (0.0, 5.0, 2.0)),
        ([], (1.25, 0.5, 12.3)),
    ]
    return RuleTable([0, 1, 2], nodes)


def integers(path: Path) -> IntegerTable:
    return IntegerTable.of(read_remycc(path).table)
