"""Commands and flags that the documents name are there."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from benchmarks.programs import ROOT
from remy_cli.main import main
from services.tests.cli.conftest import SMALL_SPEC

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
    parts = [found, *(found.commands.values() if isinstance(found, click.Group) else ())]
    parameters = [each for part in parts for each in part.params]
    return _HELP.union(*(each.opts + each.secondary_opts for each in parameters))


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


def blocks(document: Path) -> list[str]:
    """What the document has a reader type, block by block, as far as remy-farm is called there."""
    indented = re.findall(r"(?:^    .*\n)+", document.read_text(encoding="utf-8"), re.MULTILINE)
    return [block for block in indented if ".venv/bin/remy-farm " in block]


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def type_in(block: str, folder: Path, variables: dict[str, str]) -> None:
    """Has a shell run the block; what it leaves in the background is ended."""
    with (folder / "output.txt").open("w+") as output:
        shell = subprocess.Popen(
            ["bash", "-e", "-c", block],
            cwd=folder,
            env={**os.environ, **variables},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = shell.wait(timeout=240)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
        output.seek(0)
        assert code == 0, output.read()


@pytest.mark.parametrize("number", range(3))
def test_the_examples_of_the_readme_run_twice(number: int, tmp_path: Path) -> None:
    """With small specifications in place of its examples, and ports that are free."""
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    (tmp_path / "examples").mkdir()
    for name in ("general-purpose-delta1.yaml", "demo.yaml"):
        (tmp_path / "examples" / name).write_text(SMALL_SPEC)
    address = f"127.0.0.1:{free_port()}"
    variables = {
        "REMY_FARM_COORDINATOR": address,
        "REMY_FARM_COORDINATOR_LISTEN": address,
        "REMY_FARM_PATIENCE": "120",
    }
    found = blocks(ROOT / "README.md")
    assert len(found) == 3
    block = found[number].replace("50052", str(free_port()))
    for _ in range(2):
        type_in(block, tmp_path, variables)
