"""The running designer accesses nothing but its arguments: no files, clocks, threads or network."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from benchmarks.programs import ROOT

_DRIVERS = [f"remy_services.{folder}" for folder in ("analysis", "cli", "driver", "evaluation")]
# Modules of concurrency, processes, networks and terminals, which belong to the driver.
_CONCURRENCY = "asyncio concurrent.futures multiprocessing signal subprocess".split()
_EDGES = "click grpc matplotlib ray redis rich sqlite3".split()

_IMPORT = """
import json, sys
before = set(sys.modules)
import remy_farm.designer
print(json.dumps(sorted(set(sys.modules) - before)))
"""

_SEARCHES = {
    "paper": """{mode: paper, simulated_seconds: 1, paper: {
        epochs_per_split: 1, validation_specimens: 4, window_increment: {steps: 0},
        window_multiple: {steps: 0}, intersend_ms: {first_step: 1, steps: 1}}}""",
    "joint": """{mode: joint, simulated_seconds: 1, joint: {
        steps: 100, starts: 2, start_steps: 3, first_split: 4, steps_per_split: 4,
        steps_per_epoch: 8, validation_specimens: 4}}""",
}
# Modules whose built-in functions are pure. Before a module is added here, somebody must check that
# its functions have no side effects.
_PURE = set(
    "_hashlib _operator _sha2 array.__new__ builtins itertools math numpy "
    "numpy.lib.array_utils".split()
)
# Modules that the instrumentation itself calls.
_INSTRUMENTATION = {"sys"}


def run_python(*arguments: str) -> list[Any]:
    """Runs Python and parses each line of its output as JSON."""
    printed = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return [json.loads(line) for line in printed.splitlines()]


def test_designer_imports_neither_drivers_nor_what_only_drivers_need() -> None:
    (loaded,) = run_python("-c", _IMPORT)
    assert "remy_farm.designer.designer" in loaded
    forbidden = _DRIVERS + _CONCURRENCY + _EDGES
    assert [
        name
        for name in loaded
        if any(name == each or name.startswith(f"{each}.") for each in forbidden)
    ] == []


@pytest.mark.parametrize("search", _SEARCHES.values(), ids=_SEARCHES)
def test_running_designer_calls_only_pure_functions(search: str) -> None:
    design, control = run_python("-m", "tests.determinism.audited_designer", search)
    assert design["steps"] == 30
    assert set(design["accessed"]) <= _PURE | _INSTRUMENTATION
    assert {"io", "open", "time"} <= set(control["accessed"])
