"""Documents agree with the repository: links, paths, packages and counts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS
from benchmarks.programs import ROOT
from tests.headings import anchors

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PACKAGES = (
    ROOT / "library/src/remy_farm",
    ROOT / "laboratory/src/remy_laboratory",
    ROOT / "services/src/remy_services",
)
LAYERS = sorted(path.parent.name for package in PACKAGES for path in package.glob("*/__init__.py"))


def first_column(document: Path) -> set[str]:
    """Returns the code words in the first column of the document's tables."""
    rows = re.findall(r"^\| ([^|]*) \|", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]*)`", row)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_files_are_not_dead(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_headings_are_not_dead(document: Path) -> None:
    links = re.findall(r"\]\(([^):]*\.md)?#([^)]+)\)", document.read_text(encoding="utf-8"))
    dead = [
        f"{name}#{anchor}"
        for name, anchor in links
        if anchor not in anchors(document.parent / name if name else document)
    ]
    assert dead == []


@pytest.mark.parametrize("layer", LAYERS)
def test_architecture_lists_every_package(layer: str) -> None:
    assert layer in first_column(ROOT / "docs" / "explanation" / "architecture.md")


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_benchmark_is_documented(benchmark: str) -> None:
    assert f"## {benchmark}\n" in (ROOT / "docs" / "results" / "benchmarks.md").read_text(
        encoding="utf-8"
    )


def test_paths_in_the_explanation_exist() -> None:
    pages = sorted((ROOT / "docs" / "explanation").glob("*.md"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    paths = set(re.findall(r"`((?!\.)[\w./-]+/[\w.-]*)`", text))
    assert len(paths) > 40
    designer = ROOT / "library/src/remy_farm/designer"
    parents = (package.parent for package in PACKAGES)
    places = (ROOT, ROOT / "simulator", designer, *parents, *PACKAGES)
    assert [
        path for path in sorted(paths) if not any((each / path).exists() for each in places)
    ] == []


def test_readme_has_the_counts_of_the_evidence() -> None:
    words = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    (counts,) = re.findall(
        r"^Of [0-9]+ figures and tables .*$",
        (ROOT / "docs" / "results" / "evidence.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert counts.partition(";")[0] in words
