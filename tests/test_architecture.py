"""The designer is deterministic, and every class has a name of its own (docs/architecture.md).

Which part may import which is checked by import-linter; the contracts are in pyproject.toml.
"""

from __future__ import annotations

import ast
import importlib
import statistics
from collections import defaultdict
from pathlib import Path

import pytest

import remy_farm.designer
from benchmarks.programs import ROOT
from tests.architecture.determinism import violations

# An `__init__` or `__main__` that says what its package is, and holds nothing.
MARKER_LINES = 10
DESIGNER = Path(remy_farm.designer.__file__).parent
SOURCES = sorted(DESIGNER.rglob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(DESIGNER)))
def test_designer_source_shows_nothing_that_could_make_runs_differ(path: Path) -> None:
    found = violations(path.read_text(encoding="utf-8"))
    assert not found, "\n".join(f"{path}:{each.line}: {each.reason}" for each in found)


@pytest.mark.parametrize(
    "source",
    [
        "import math\ny = math.log(x)",
        "import math as m\ny = m.exp(x)",
        "from math import pow",
        "import numpy as np\ny = np.sum(x)",
        "import numpy as np\ny = np.random.rand()",
        "from numpy import dot",
        "y = (a * b).sum()",
        "y = a @ b",
        "y = a ** 2",
        "y = 2.0 ** 3",
        "y **= 2",
        "y = pow(2.0, x)",
        "import random",
        "from random import shuffle",
        "import statistics",
        "y = hash(x)",
        "y = open(x)",
        "for y in {1, 2}: ...",
        "y = [z for z in set(x)]",
        "y = [*frozenset(x)]",
        "y = list({z for z in x})",
        "y = ','.join(set(x))",
        "s = set(x)\nfor y in s | t: ...",
        "def f(s: set[int]) -> None:\n    for y in s: ...",
        "s: frozenset[int] = g()\ny = tuple(s)",
        "s = {1}\ny = s.pop()",
    ],
)
def test_source_that_could_make_runs_differ_is_found(source: str) -> None:
    assert violations(source)


@pytest.mark.parametrize(
    "source",
    [
        "import math\ny = math.fsum(x) / math.sqrt(z)",
        "import numpy as np\ny = np.asarray(x) * 2.0 + 1.0",
        "y = 2**32 - 1",
        "y = sum(counts)",
        "for y in sorted(set(x)): ...",
        "y = x in {1, 2}",
        "y = len(set(x)) == len(x)",
        "y = stack.pop()",
    ],
)
def test_exact_source_is_let_through(source: str) -> None:
    assert not violations(source)


@pytest.mark.parametrize("member", ["remy_rpc", "remy_services", "remy_simulator", "remy_workers"])
def test_member_is_a_package_with_types(member: str) -> None:
    init = importlib.import_module(member).__file__
    assert init, f"{member} has no __init__.py"
    assert (Path(init).parent / "py.typed").exists()


#: Classes that are the same thing seen from two programs, or a part of several searches.
_SHARED_NAMES = {
    # The exit codes of remy-farm and of remy-farm-worker.
    "ExitCode",
    # A task and its answer, at the scheduler and at the worker that does it; and the worker itself.
    *("Answer", "Task", "Worker"),
    # Steps of two searches.
    "TrySplits",
    # What a coordinator answers, as its clients and as its workers see it.
    "Refused",
}


def test_no_class_name_has_two_meanings() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for folder in ("rpc/src", "services/src", "simulator/python", "workers/src"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    places[node.name].append(str(path.relative_to(ROOT)))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert set(twice) <= _SHARED_NAMES, {
        name: found for name, found in twice.items() if name not in _SHARED_NAMES
    }


#: Modules at most, and least mean and median of their lines (docs/architecture.md).
GRAIN = {"services": (180, 150, 120), "workers": (15, 150, 120)}
#: Lines at most, but for those of OPTIONAL.
MOST_LINES = {"services": 32_745, "workers": 2_000}
#: What nothing else needs, and may be left unread: chapters, and their lines at most.
OPTIONAL = {
    "services/src/remy_services/kubernetes/design_jobs.py": 610,
    "services/src/remy_services/coordinator/design_jobs.py": 290,
    "services/src/remy_services/coordinator/evaluation_run.py": 250,
    "services/src/remy_services/coordinator/handlers/evaluations.py": 150,
    "services/src/remy_cli/on_farm.py": 170,
    "library/src/remy_farm/analysis/recording.py": 240,
    "library/src/remy_farm/evaluation/topologies.py": 290,
    "laboratory/src/remy_laboratory/kernel/checks.py": 320,
    "laboratory/src/remy_laboratory/kernel/differential.py": 450,
    "laboratory/src/remy_laboratory/kernel/fixed_point.py": 310,
    "laboratory/src/remy_laboratory/kernel/libbpf.py": 330,
    "laboratory/src/remy_laboratory/kernel/linux.py": 190,
    "laboratory/src/remy_laboratory/kernel/measuring.py": 530,
    "laboratory/src/remy_laboratory/kernel/noise.py": 160,
    "laboratory/src/remy_laboratory/kernel/running.py": 280,
    "services/src/remy_cli/kernel.py": 530,
    "laboratory/src/remy_laboratory/studies/attack.py": 400,
    "laboratory/src/remy_laboratory/studies/cells.py": 390,
    "laboratory/src/remy_laboratory/studies/league.py": 550,
    "laboratory/src/remy_laboratory/studies/networks.py": 300,
    "laboratory/src/remy_laboratory/studies/ns3.py": 290,
    "laboratory/src/remy_laboratory/studies/page.py": 300,
    "laboratory/src/remy_laboratory/studies/pictures.py": 550,
    "laboratory/src/remy_laboratory/studies/reading.py": 300,
    "laboratory/src/remy_laboratory/studies/robustness.py": 270,
    "laboratory/src/remy_laboratory/studies/study.py": 490,
    "laboratory/src/remy_laboratory/studies/verdicts.py": 570,
    "services/src/remy_cli/reproduce.py": 430,
    "services/src/remy_cli/robustness.py": 250,
    "services/src/remy_cli/play.py": 110,
    "services/src/remy_cli/ui.py": 110,
    "services/src/remy_services/web/assets.py": 100,
    "services/src/remy_services/web/feed.py": 345,
    "services/src/remy_services/web/guard.py": 150,
    "services/src/remy_services/web/handlers.py": 245,
    "services/src/remy_services/web/server.py": 400,
    "services/src/remy_services/web/sessions.py": 190,
}


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def lines_of_modules(member: str) -> list[int]:
    return [lines_of(path) for path in sorted((ROOT / member / "src").rglob("*.py"))]


@pytest.mark.parametrize("member", GRAIN)
def test_a_file_is_a_chapter(member: str) -> None:
    most_modules, least_mean, least_median = GRAIN[member]
    lines = lines_of_modules(member)
    assert len(lines) <= most_modules
    assert statistics.fmean(lines) > least_mean
    assert statistics.median(count for count in lines if count > MARKER_LINES) > least_median


@pytest.mark.parametrize("member", MOST_LINES)
def test_a_member_can_be_held_in_one_head(member: str) -> None:
    optional = sum(lines_of(ROOT / path) for path in OPTIONAL if path.startswith(f"{member}/"))
    assert sum(lines_of_modules(member)) - optional <= MOST_LINES[member]


@pytest.mark.parametrize("path", OPTIONAL)
def test_an_optional_chapter_stays_one(path: str) -> None:
    assert lines_of(ROOT / path) <= OPTIONAL[path]
