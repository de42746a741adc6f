"""Commands and flags in the documents exist, and the README's examples run."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import textwrap
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
# A call of remy-farm with its arguments, up to a comment, a closing quote or the end of the line; a
# line that ends with a backslash is continued.
_CALL = re.compile(r"(?:^|[\s`(/])remy-farm ([a-z][a-z-]*)((?:\\\n|[^\n`#])*)", re.MULTILINE)
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
_HELP = {"--help"}


def calls(document: Path) -> Iterator[tuple[str, set[str]]]:
    """Yields the name and flags of each call in the document; prose is not mistaken for a call."""
    for name, rest in _CALL.findall(document.read_text(encoding="utf-8")):
        flags = set(_FLAG.findall(rest))
        if flags or command(name) is not None:
            yield name, flags


def command(name: str) -> click.Command | None:
    return main.get_command(click.Context(main), name)


def flags_of(name: str) -> set[str]:
    root = command(name)
    assert root is not None, name
    commands = [root, *(root.commands.values() if isinstance(root, click.Group) else ())]
    options = [option for each in commands for option in each.params]
    return _HELP.union(*(option.opts + option.secondary_opts for option in options))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_and_flags_exist(document: Path) -> None:
    unknown = {
        f"remy-farm {name} {flag}"
        for name, flags in calls(document)
        for flag in flags - flags_of(name)
    }
    assert unknown == set()


def test_documents_have_calls_of_many_commands() -> None:
    named = {name for document in DOCUMENTS for name, _ in calls(document)}
    assert len(named) > 20


def blocks(document: Path) -> list[str]:
    """Returns the document's indented blocks that call .venv/bin/remy-farm."""
    indented = re.findall(r"(?:^    .*\n)+", document.read_text(encoding="utf-8"), re.MULTILINE)
    return [block for block in indented if ".venv/bin/remy-farm " in block]


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def run_in_shell(block: str, folder: Path, variables: dict[str, str]) -> None:
    """Runs the block in a shell and kills the processes that it leaves in the background."""
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


@pytest.mark.parametrize("number", range(2))
def test_readme_example_runs_twice(number: int, tmp_path: Path) -> None:
    """The specifications are replaced by small ones, and the ports by free ones."""
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
    examples = [block for block in blocks(ROOT / "README.md") if "reproduce" not in block]
    assert len(examples) == 2
    example = examples[number].replace("50052", str(free_port()))
    for _ in range(2):
        run_in_shell(example, tmp_path, variables)


#: Pages whose commands run as one program, from top to bottom. Other pages need a cluster, a
#: kernel or hours.
PROGRAMS = (
    "docs/tutorials/first-design.md",
    "docs/tutorials/your-own-network.md",
    "docs/tutorials/farm-on-a-laptop.md",
    "docs/how-to/describe-a-network.md",
    "docs/how-to/read-a-rule.md",
    "docs/how-to/resume-a-design.md",
)


@pytest.mark.parametrize("page", PROGRAMS)
def test_page_runs_from_top_to_bottom(page: str, tmp_path: Path) -> None:
    """Searches are shortened, specifications of examples are small, and ports are free."""
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    (tmp_path / "examples").mkdir()
    for name in ("general-purpose-delta1.yaml", "demo.yaml"):
        (tmp_path / "examples" / name).write_text(SMALL_SPEC)
    text = (ROOT / page).read_text(encoding="utf-8")
    # A block without a command is output and is not run.
    indented = re.findall(r"(?:^    .*\n)+", text, re.MULTILINE)
    commands = [
        textwrap.dedent(block)
        for block in indented
        if ".venv/bin/remy-farm " in block or re.search(r"^    kill ", block, re.MULTILINE)
    ]
    program = "\n".join(commands).replace("50052", str(free_port()))
    program = re.sub(r"\bsteps: \d+", "steps: 2", program)
    program = program.replace("sleep 10", "sleep 1")
    run_in_shell(program, tmp_path, {"REMY_FARM_PATIENCE": "120"})
