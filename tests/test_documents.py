"""The documents name what there is."""

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
    """What stands between backquotes in the first cells of the document's tables."""
    rows = re.findall(r"^\| ([^|]*) \|", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]*)`", row)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_to_headings_lead_to_one(document: Path) -> None:
    links = re.findall(r"\]\(([^):]*\.md)?#([^)]+)\)", document.read_text(encoding="utf-8"))
    astray = [
        f"{name}#{anchor}"
        for name, anchor in links
        if anchor not in anchors(document.parent / name if name else document)
    ]
    assert astray == []


@pytest.mark.parametrize("layer", LAYERS)
def test_the_architecture_names_every_layer(layer: str) -> None:
    assert layer in first_column(ROOT / "docs" / "explanation" / "architecture.md")


@pytest.mark.parametrize("figure", BENCHMARKS)
def test_the_method_of_every_figure_is_written_down(figure: str) -> None:
    assert f"## {figure}\n" in (ROOT / "docs" / "results" / "benchmarks.md").read_text(
        encoding="utf-8"
    )


def test_paths_that_the_architecture_names_exist() -> None:
    text = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    words = re.findall(r"`([\w./-]+/[\w.-]*)`", text)
    assert len(words) > 10
    places = (ROOT, ROOT / "simulator", *(package.parent for package in PACKAGES), *PACKAGES)
    assert [word for word in words if not any((place / word).exists() for place in places)] == []


def test_the_readme_claims_what_the_page_of_evidence_counts() -> None:
    words = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    (counts,) = re.findall(
        r"^Of [0-9]+ figures and tables .*$",
        (ROOT / "docs" / "results" / "evidence.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert counts.partition(";")[0] in words
