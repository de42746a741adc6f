"""Runs the scripts of designer commands and compares their output."""

import os
from pathlib import Path

import pytest

from library.tests.designer.script_runner import replay

_SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("path", _SCRIPTS, ids=lambda path: path.stem)
def test_script_has_the_expected_output(path: Path) -> None:
    actual = replay(path)
    if os.environ.get("REWRITE_SCRIPTS"):
        path.write_text(actual)
    assert actual == path.read_text()


def test_there_are_scripts() -> None:
    assert len(_SCRIPTS) >= 4
