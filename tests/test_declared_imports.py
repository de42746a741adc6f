"""Checks that members import only what they declare, so that each wheel works on its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.programs import ROOT
from tests.architecture.declared import SOURCES, read_member, undeclared


@pytest.mark.parametrize("member", SOURCES)
def test_member_imports_only_declared_packages(member: str) -> None:
    assert undeclared(read_member(ROOT / member)) == []


@pytest.fixture
def small_member(tmp_path: Path) -> Path:
    """A member `workers` that declares gRPC for its sources, and pytest for its tests."""
    for folder in ("workers/src", "workers/tests", "services/tests", "tests", "benchmarks"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "workers/pyproject.toml").write_text(
        '[project]\nname = "small"\ndependencies = ["grpcio>=1.80"]\n'
        '[dependency-groups]\ntest = ["pytest"]\n'
    )
    (tmp_path / "services/pyproject.toml").write_text(
        '[project]\nname = "remy-farm-services"\ndependencies = []\n'
        "[dependency-groups]\ntest = []\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("file", "source", "message"),
    [
        ("workers/src/a.py", "import click", "a.py imports click, which belongs to click"),
        ("workers/src/a.py", "def f():\n    import redis.asyncio", "which belongs to redis"),
        ("workers/src/a.py", "import pytest", "which belongs to pytest"),
        ("workers/src/a.py", "from google.rpc import code_pb2", "googleapis-common-protos"),
        ("workers/tests/a.py", "from remy_farm import files", "which belongs to remy-farm"),
        ("workers/tests/a.py", "from tests import helper", r"imports yaml \(via .*helper.py\)"),
        ("workers/tests/a.py", "from tests.test_all import x", "which its tests may not use"),
        ("workers/tests/a.py", "from services.tests import foreign", "which its tests may not use"),
        ("workers/tests/a.py", "import benchmarks.programs", "which its tests may not use"),
    ],
)
def test_undeclared_import_is_found(
    small_member: Path, file: str, source: str, message: str
) -> None:
    (small_member / "tests/helper.py").write_text("import yaml\n")
    (small_member / "tests/test_all.py").touch()
    (small_member / "services/tests/foreign.py").touch()
    (small_member / "benchmarks/programs.py").touch()
    (small_member / file).write_text(f"{source}\n")
    (sentence,) = undeclared(read_member(small_member / "workers"))
    assert re.search(message, sentence)


def test_declared_import_is_accepted(small_member: Path) -> None:
    (small_member / "tests/waiting.py").write_text("import time\n")
    (small_member / "workers/src/a.py").write_text("import ast, grpc.aio\n")
    (small_member / "workers/tests/b.py").write_text(
        "import grpc, pytest\nfrom tests.waiting import wait\nfrom workers.tests import c\n"
    )
    (small_member / "workers/tests/c.py").touch()
    assert undeclared(read_member(small_member / "workers")) == []


_EXTRA = re.compile(r"(remy-[a-z-]+)\[([a-z0-9,]+)\]")
_FILES_WITH_EXTRAS = sorted(
    path
    for folder in (*SOURCES, "docs", "tests", "deploy")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".md", ".toml") and ".venv" not in path.parts
)


def test_every_mentioned_extra_is_declared() -> None:
    """Extras are mentioned in error messages, in documents and in requirements."""
    named = {
        (match[1], extra)
        for path in [*_FILES_WITH_EXTRAS, *ROOT.glob("*.md")]
        if path.name != "CHANGELOG.md"
        for match in _EXTRA.finditer(path.read_text(encoding="utf-8"))
        for extra in match[2].split(",")
    }
    declared = {
        (member.name, extra)
        for member in (read_member(ROOT / folder) for folder in SOURCES)
        for extra in member.extras
    }
    assert ("remy-farm-services", "ui") in named
    assert named <= declared, sorted(named - declared)
