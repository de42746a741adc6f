"""Python in documents and notebooks runs and passes the type checker."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from benchmarks.programs import ROOT
from services.tests.cli.service.real_coordinator import Coordinator
from tests.test_notebooks import NOTEBOOKS, read

DOCUMENTS = [
    path
    for path in sorted(
        [*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *(ROOT / "docs").rglob("*.md")]
    )
    if "\n```python\n" in path.read_text(encoding="utf-8")
]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def program(document: Path) -> str:
    """Returns all Python blocks of the document as one program."""
    return "\n".join(_BLOCK.findall(document.read_text(encoding="utf-8")))


def notebook_program(path: Path) -> str:
    """Returns the code of a notebook's cells as one program."""
    cells: list[nbformat.NotebookNode] = read(path).cells
    return "\n".join(str(cell.source) for cell in cells if cell.cell_type == "code")


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Coordinator]:
    started = Coordinator(tmp_path_factory.mktemp("coordinator"))
    started.start()
    yield started
    started.close()


def test_readme_and_library_page_have_python() -> None:
    assert {path.name for path in DOCUMENTS} >= {"README.md", "library.md"}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_of_document_runs(document: Path, tmp_path: Path, coordinator: Coordinator) -> None:
    """The coordinator's address is replaced, and long designs are shortened."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    text = program(document).replace("localhost:50051", coordinator.address)
    text = text.replace("rf.design(spec, seconds=20)", "rf.design(spec, seconds=2)")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "MPLCONFIGDIR": str(tmp_path)},
        timeout=240,
    )
    assert done.returncode == 0, done.stderr


def test_python_of_documents_passes_the_type_checker(tmp_path: Path) -> None:
    files = []
    for path in DOCUMENTS:
        files.append(tmp_path / f"{path.stem.lower().replace('-', '_')}_{path.parent.name}.py")
        files[-1].write_text(program(path))
    for path in NOTEBOOKS:
        files.append(tmp_path / f"notebook_{path.stem.replace('-', '_')}.py")
        files[-1].write_text(notebook_program(path))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", *map(str, files)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
