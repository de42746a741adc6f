"""Checks that CONTRIBUTING.md names every source file that an addition touches."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (
    "proto/remy_farm",
    "simulator/src",
    "simulator/python",
    "library/src",
    "services/src",
    "play/src",
)
SUFFIXES = {".proto", ".h", ".cc", ".py", ".ts"}


def _rows() -> dict[str, set[str]]:
    chapter = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## To add\n")[2]
    lines = re.findall(r"^\| ([a-z ]+) \| (.*) \|$", chapter.partition("\n## ")[0], re.MULTILINE)
    return {name: set(re.findall(r"`([^`]+)`", files)) for name, files in lines}


@pytest.mark.parametrize(
    ("addition", "example"),
    [
        ("signal", r"\b(SIGNAL_RTTS_SINCE_LOSS|kRttsSinceLoss)\b|\"rtts_since_loss\""),
        ("measure of throughput", r"\bTHROUGHPUT_MEASURE_COMPLETION\b|\"completion\", true"),
        (
            "strategy",
            r"\bSEARCH_MODE_PATTERN\b|\bPattern(Strategy|Search|SearchState)\b|\"pattern\"",
        ),
        ("protocol", r"\bProtocol vegas\(\)"),
        ("queue", r"\bQueueDiscipline codel\(\)"),
        ("command", r"\"play\": \(\"play\""),
    ],
)
def test_row_names_every_file_that_mentions_the_example(addition: str, example: str) -> None:
    mentions = {
        str(path.relative_to(ROOT))
        for folder in SOURCES
        for path in (ROOT / folder).rglob("*")
        if path.suffix in SUFFIXES and re.search(example, path.read_text())
    }
    files_of_example = (
        "simulator/src/protocols/vegas.cc",
        "simulator/src/elements/codel.cc",
        "library/src/remy_farm/designer/pattern/",
    )
    assert mentions
    assert {name for name in mentions if not name.startswith(files_of_example)} <= _rows()[addition]


def test_files_in_rows_exist() -> None:
    named = {name for files in _rows().values() for name in files if not re.search(r"[< ]", name)}
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
