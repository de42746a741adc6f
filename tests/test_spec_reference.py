"""docs/reference/spec.md is up to date with the proto files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from remy_farm.specification import parse_spec
from scripts.spec_reference import reference_page

_ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def page() -> str:
    return reference_page(_ROOT / "proto")


def test_the_page_is_up_to_date(page: str) -> None:
    assert (_ROOT / "docs" / "reference" / "spec.md").read_text(encoding="utf-8") == page, (
        "docs/reference/spec.md is stale; python scripts/spec_reference.py proto prints it"
    )


def test_script_prints_the_page(page: str) -> None:
    result = subprocess.run(
        [sys.executable, "scripts/spec_reference.py", "proto"],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == page


def test_every_key_has_a_description(page: str) -> None:
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) > 50
    assert [row[0] for row in rows if len(row[-1]) < 5] == []


def test_example_on_the_page_is_a_valid_specification(page: str) -> None:
    example = "\n".join(line for line in page.splitlines() if line.startswith("    "))
    assert parse_spec(example).name == "two-senders"


def test_farm_page_shows_the_same_reference() -> None:
    """The copy that is installed with the farm's page is a link, so that it cannot get stale."""
    shown = _ROOT / "services" / "src" / "remy_services" / "web" / "page" / "spec.md"
    assert shown.resolve() == (_ROOT / "docs" / "reference" / "spec.md").resolve()
