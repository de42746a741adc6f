"""The designer is deterministic, and class names are unique (docs/explanation/architecture.md).

Which part may import which is checked by import-linter; the contracts are in pyproject.toml.
"""

from __future__ import annotations

import ast
import importlib
from collections import defaultdict
from pathlib import Path

import pytest

import remy_farm.designer
from benchmarks.programs import ROOT
from tests.architecture.determinism import violations

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


PACKAGES = (
    "remy_cli",
    "remy_farm",
    "remy_laboratory",
    "remy_proto",
    "remy_rpc",
    "remy_services",
    "remy_simulator",
    "remy_workers",
)


@pytest.mark.parametrize("member", PACKAGES)
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
    # A design and a job, as users of the library have them, and as Kubernetes and queues do.
    *("Design", "Job"),
}


def test_no_class_name_has_two_meanings() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for folder in (
        "library/src",
        "laboratory/src",
        "rpc/src",
        "services/src",
        "simulator/python",
        "workers/src",
    ):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    places[node.name].append(str(path.relative_to(ROOT)))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert set(twice) <= _SHARED_NAMES, {
        name: found for name, found in twice.items() if name not in _SHARED_NAMES
    }
