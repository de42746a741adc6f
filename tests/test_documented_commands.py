"""Commands and flags that the documents name are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from benchmarks.programs import ROOT
from remy_services.cli.main import main

DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(
            path
            for part in ("docs", "charts", "deploy", "examples")
            for path in (ROOT / part).rglob("*.md")
        ),
    ]
)
# A call with all of its line, and of the lines that it goes on in, up to a comment or the end of
# what is quoted.
_CALL = re.compile(r"(?:^|[\s`(/])remy-farm ([a-z][a-z-]*)((?:\\\n|[^\n`#])*)", re.MULTILINE)
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
_HELP = {"--help"}


def calls(document: Path) -> Iterator[tuple[str, set[str]]]:
    """Names of commands, with the flags that they are given; prose is taken for neither."""
    for name, rest in _CALL.findall(document.read_text(encoding="utf-8")):
        flags = set(_FLAG.findall(rest))
        if flags or command(name) is not None:
            yield name, flags


def command(name: str) -> click.Command | None:
    return main.get_command(click.Context(main), name)


def flags_of(name: str) -> set[str]:
    found = command(name)
    assert found is not None, name
    return _HELP.union(*(each.opts + each.secondary_opts for each in found.params))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_and_flags_exist(document: Path) -> None:
    unknown = {
        f"remy-farm {name} {flag}"
        for name, flags in calls(document)
        for flag in flags - flags_of(name)
    }
    assert unknown == set()


def test_the_documents_name_commands() -> None:
    named = {name for document in DOCUMENTS for name, _ in calls(document)}
    assert len(named) > 20
