"""What static checks cannot see: the designer, at work, touches nothing but its arguments."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from benchmarks.programs import ROOT

_DRIVERS = [f"remy_services.{folder}" for folder in ("analysis", "cli", "driver", "evaluation")]
# What a designer that drives itself would need: concurrency, processes, a network, a terminal.
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
# Modules of the built-in functions that a pure function may call; whatever is not here either
# touches the outside world, or is added here after a look.
_PURE = set(
    "_hashlib _operator _sha2 array.__new__ builtins itertools math numpy "
    "numpy.lib.array_utils".split()
)
_OF_THE_WATCH_ITSELF = {"sys"}


def run(*arguments: str) -> list[Any]:
    """What Python prints with these arguments, one JSON value a line."""
    printed = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return [json.loads(line) for line in printed.splitlines()]


def test_importing_the_designer_imports_no_driver_and_nothing_that_only_drivers_need() -> None:
    (loaded,) = run("-c", _IMPORT)
    assert "remy_farm.designer.designer" in loaded
    forbidden = _DRIVERS + _CONCURRENCY + _EDGES
    assert [
        name
        for name in loaded
        if any(name == each or name.startswith(f"{each}.") for each in forbidden)
    ] == []


@pytest.mark.parametrize("search", _SEARCHES.values(), ids=_SEARCHES)
def test_the_designer_at_work_touches_nothing_outside(search: str) -> None:
    work, control = run("-m", "tests.determinism.watched_designer", search)
    assert work["steps"] == 30
    assert set(work["touched"]) <= _PURE | _OF_THE_WATCH_ITSELF
    assert {"io", "open", "time"} <= set(control["touched"])
