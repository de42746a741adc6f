"""What a designer itself takes between the simulations of two steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.figure import Figure, Row
from benchmarks.programs import ROOT
from benchmarks.tables import ABSOLUTE

_NAME = "general-purpose-delta1"
_PAIRS = 16
_STEPS = 10
_ROUNDS = 3
#: Names the folder of another version's checkout, with its `.venv`.
BESIDE: Final = "REMY_BENCHMARK_BESIDE"


def measure() -> list[Row]:
    """A row for each table, of this version; and with another one beside it, of that."""
    versions = {"this": Path(sys.executable)}
    if os.environ.get(BESIDE):
        versions["other"] = Path(os.environ[BESIDE]) / ".venv" / "bin" / "python"
    rows: list[Row] = []
    for name, remycc in (
        ("one rule", []),
        ("204 rules", [ABSOLUTE / _NAME / "remycc.dna"]),
    ):
        spent: dict[str, list[tuple[float, float]]] = {version: [] for version in versions}
        for _ in range(_ROUNDS):
            for version, python in versions.items():
                spent[version] += _steps(python, remycc)
        for version, steps in spent.items():
            ask, hear = (min(values) for values in zip(*steps, strict=True))
            rows.append(
                {
                    "table": name,
                    "version": version,
                    "ms to ask": ask,
                    "ms to hear": hear,
                    "ms": ask + hear,
                    "ratio": (ask + hear) / float(str(rows[-1]["ms"]))
                    if version == "other"
                    else None,
                }
            )
    return rows


def _steps(python: Path, remycc: list[Path]) -> list[tuple[float, float]]:
    script = ROOT / "benchmarks" / "steps_of_a_design.py"
    spec = ABSOLUTE / _NAME / "spec.yaml"
    command: list[str | Path] = [python, script, spec, str(_PAIRS), str(_STEPS), *remycc]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/").stdout
    return [(ask, hear) for ask, hear in json.loads(printed)]


FIGURE = Figure(
    "designer-step",
    "A designer's own time for a step",
    f"Joint designs of tests/data/remyccs-absolute/{_NAME} with {_PAIRS} antithetic pairs a step "
    "(32 simulations), of one rule and of the table that is there. CPU time of the designer's "
    "thread, to ask for a step and to make something of the answer, without the simulations in "
    f"between: the least of {_ROUNDS} rounds of {_STEPS} steps each, which other programs "
    f"disturb least. Another version, whose folder {BESIDE} names, runs the same program in "
    "turns; the ratio is what it takes over what this one takes.",
    measure,
)
