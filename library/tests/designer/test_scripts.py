"""Scripts of commands and what must come of them."""

import os
from pathlib import Path

import pytest

from library.tests.designer.script_runner import replay

_SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("path", _SCRIPTS, ids=lambda path: path.stem)
def test_script_happens_as_written(path: Path) -> None:
    happened = replay(path)
    if os.environ.get("REWRITE_SCRIPTS"):
        path.write_text(happened)
    assert happened == path.read_text()


def test_there_are_scripts() -> None:
    assert len(_SCRIPTS) >= 4
