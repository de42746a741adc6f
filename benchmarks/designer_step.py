"""Measures the designer's own CPU time between the simulations of two steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.benchmark import Benchmark, Row
from benchmarks.programs import ROOT
from benchmarks.tables import ABSOLUTE

_NAME = "general-purpose-delta1"
_PAIRS = 16
_STEPS = 10
_ROUNDS = 3
#: The environment variable that names another version's checkout, which has its own `.venv`.
BESIDE: Final = "REMY_BENCHMARK_BESIDE"


def measure() -> list[Row]:
    """Returns one row per table and version: this one, and the one that BESIDE names, if any."""
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
            request_ms, receive_ms = (min(values) for values in zip(*steps, strict=True))
            rows.append(
                {
                    "table": name,
                    "version": version,
                    "ms to make the request": request_ms,
                    "ms to process the outcome": receive_ms,
                    "ms": request_ms + receive_ms,
                    "ratio": (request_ms + receive_ms) / float(str(rows[-1]["ms"]))
                    if version == "other"
                    else None,
                }
            )
    return rows


def _steps(python: Path, remycc: list[Path]) -> list[tuple[float, float]]:
    """Returns each step's milliseconds for making the request and for processing the outcome."""
    script = ROOT / "benchmarks" / "steps_of_a_design.py"
    spec = ABSOLUTE / _NAME / "spec.yaml"
    command: list[str | Path] = [python, script, spec, str(_PAIRS), str(_STEPS), *remycc]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/").stdout
    return [(request_ms, receive_ms) for request_ms, receive_ms in json.loads(printed)]


BENCHMARK = Benchmark(
    "designer-step",
    "The designer's own CPU time per step",
    f"Joint designs of tests/data/remyccs-absolute/{_NAME} with {_PAIRS} antithetic pairs per step "
    "(32 simulations), starting from one rule and from the table in that folder. Measured is the "
    "CPU time of the designer's thread for making the request and for processing the outcome, "
    f"without the simulations in between: the minimum of {_ROUNDS} rounds of {_STEPS} steps each, "
    f"which other programs disturb least. If {BESIDE} names another version's checkout, both "
    "versions run alternately; the ratio is the other version's time over this one's.",
    measure,
)
