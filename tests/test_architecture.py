"""Checks that the designer's source is deterministic, that the C++ folders include only those below
them, and that class names are unique.

import-linter checks the direction of Python's imports; its contracts are in pyproject.toml.
"""

from __future__ import annotations

import ast
import importlib
from collections import defaultdict
from pathlib import Path

import pytest

import remy_farm.designer
from benchmarks.programs import ROOT
from tests.architecture.determinism import find_hazards
from tests.architecture.includes import find_bad_includes, folder_order

DESIGNER = Path(remy_farm.designer.__file__).parent
SOURCES = sorted(DESIGNER.rglob("*.py"))
SIMULATOR = ROOT / "simulator"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(DESIGNER)))
def test_designer_source_has_no_nondeterministic_code(path: Path) -> None:
    hazards = find_hazards(path.read_text(encoding="utf-8"))
    assert not hazards, "\n".join(f"{path}:{hazard.line}: {hazard.reason}" for hazard in hazards)


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
def test_nondeterministic_source_is_found(source: str) -> None:
    assert find_hazards(source)


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
def test_deterministic_source_is_accepted(source: str) -> None:
    assert not find_hazards(source)


def test_cpp_folders_include_only_those_below_them() -> None:
    order = folder_order((SIMULATOR / "README.md").read_text(encoding="utf-8"))
    assert sorted(order) == sorted(path.name for path in (SIMULATOR / "src").iterdir())
    bad = find_bad_includes(SIMULATOR / "src", order)
    assert not bad, "\n".join(
        f"{each.file} includes {each.included}: {each.reason}" for each in bad
    )


@pytest.mark.parametrize(
    ("file", "included"),
    [
        ("core/random.h", "network/network.h"),
        ("core/random.h", "elsewhere/file.h"),
        ("core/random.h", "core/missing.h"),
        ("elsewhere/file.h", "core/random.h"),
    ],
    ids=["a higher folder", "an unknown folder", "a missing file", "from an unknown folder"],
)
def test_include_that_the_order_forbids_is_found(tmp_path: Path, file: str, included: str) -> None:
    for name in ("core/random.h", "network/network.h"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text('#include <vector>\n#include "core/random.h"\n')
    assert find_bad_includes(tmp_path, ["core", "network"]) == []
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(f'#include "{included}"\n')
    assert [
        (each.file, each.included) for each in find_bad_includes(tmp_path, ["core", "network"])
    ] == [(file, included)]


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
def test_package_has_type_information(member: str) -> None:
    init = importlib.import_module(member).__file__
    assert init, f"{member} has no __init__.py"
    assert (Path(init).parent / "py.typed").exists()


#: Names that several classes may have, because they are views of one concept in several programs.
_SHARED_NAMES = {
    # The exit codes of remy-farm and of remy-farm-worker.
    "ExitCode",
    # A task, its answer and a worker, in the scheduler and in the worker's own process.
    *("Answer", "Task", "Worker"),
    # A step of the joint search and one of the pattern search.
    "TrySplits",
    # A coordinator's refusal, as its clients and as its workers receive it.
    "Refused",
    # A design and a job, in the library and in the service.
    *("Design", "Job"),
}


def test_class_names_are_unique() -> None:
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
    duplicates = {
        name: files
        for name, files in places.items()
        if len(files) > 1 and name not in _SHARED_NAMES
    }
    assert duplicates == {}
