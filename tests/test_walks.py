"""The walks of docs/architecture.md name files that there are, and leave none out."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import remy_simulator
from benchmarks.programs import ROOT
from remy_services.designer import Designer
from remy_services.evaluation.local import LocalEvaluator
from remy_services.specification import parse_spec

MOST_FILES = 25
STEPS = 3
#: What names a design by its digest, and seals its state: met once, and no part of a step.
DIGESTS = {
    "services/src/remy_services/specification/writing.py",
    "services/src/remy_services/designer/checkpoint.py",
    "simulator/python/remy_simulator/fingerprint.py",
}
SIMULATOR = Path(remy_simulator.__file__).parent


def walks() -> list[list[str]]:
    """The files of each numbered list, in order."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.partition("## A newcomer's walk\n")[2].partition("\n## ")[0]
    lists = re.findall(r"(?:^\d+\. .*\n)+", section, re.MULTILINE)
    return [re.findall(r"^\d+\. `([^`]+)`: \S", each, re.MULTILINE) for each in lists]


def ours(file: str) -> str | None:
    """A Python file's path in this repository; None for what is not ours."""
    path = Path(file)
    if path.is_relative_to(SIMULATOR):
        return f"simulator/python/remy_simulator/{path.relative_to(SIMULATOR)}"
    if path.is_relative_to(ROOT) and "src" in path.parts:
        return str(path.relative_to(ROOT))
    return None


@pytest.mark.parametrize("number", [0, 1])
def test_a_walk_is_short_and_its_files_exist(number: int) -> None:
    walk = walks()[number]
    assert 15 < len(set(walk)) == len(walk) <= MOST_FILES
    assert [file for file in walk if not (ROOT / file).is_file()] == []


def test_a_design_enters_no_file_beside_the_walk() -> None:
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and (file := ours(frame.f_code.co_filename)) is not None:
            entered.add(file)

    text = (ROOT / "examples" / "demo.yaml").read_text(encoding="utf-8")
    evaluator = LocalEvaluator(1)
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        designer = Designer(parse_spec(text))
        while designer.steps < STEPS and (request := designer.next_request()) is not None:
            designer.receive(evaluator.evaluate(request))
    finally:
        sys.setprofile(before)
        evaluator.close()
    assert designer.steps == STEPS
    assert entered - set(walks()[0]) - DIGESTS == set()
