"""Tests that docs/reference/command-line.md is complete, and that examples in help are valid."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from remy_cli.failures import ExitCode
from remy_cli.main import main

TEXT = (Path(__file__).parents[3] / "docs" / "reference" / "command-line.md").read_text(
    encoding="utf-8"
)
COMMANDS = main.list_commands(click.Context(main))
# The many settings of the servers are documented by --help only.
ELSEWHERE = {"coordinator", "worker"}


def _with_subcommands(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        yield from command.commands.values()


@pytest.mark.parametrize("name", COMMANDS)
def test_command_and_its_options_are_documented(name: str) -> None:
    assert re.search(rf"^    remy-farm ([\w-]+ \| )*{name}\b", TEXT, re.MULTILINE), name
    if name in ELSEWHERE:
        return
    command = main.get_command(click.Context(main), name)
    assert command is not None
    parameters = [each for part in _with_subcommands(command) for each in part.params]
    flags = {flag for each in parameters for flag in each.opts if flag.startswith("--")}
    assert sorted(flag for flag in flags if flag not in TEXT) == []


@pytest.mark.parametrize("code", ExitCode)
def test_exit_code_is_documented(code: ExitCode) -> None:
    assert f"\n| {code.value} | " in TEXT


def _examples() -> list[str]:
    """Returns all example commands in help texts, without the redirection of their output."""
    context = click.Context(main)
    commands = [main.get_command(context, name) for name in COMMANDS]
    epilogs = [part.epilog for each in commands if each for part in _with_subcommands(each)]
    lines = [line.strip() for epilog in epilogs if epilog for line in epilog.splitlines()]
    return [line.partition(" > ")[0] for line in lines if line.startswith("remy-farm ")]


@pytest.mark.parametrize("example", _examples())
def test_examples_in_help_are_valid(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "remy_one").mkdir()
    _, name, *arguments = shlex.split(example)
    command = main.get_command(click.Context(main), name)
    while isinstance(command, click.Group):
        command = command.commands[arguments.pop(0)]
    assert command is not None, name
    command.make_context(name, arguments)
    # A longer line would wrap in a terminal of 80 columns.
    assert len(example) <= 76


def test_examples_are_shown_for_the_main_commands() -> None:
    commands_with_examples = {example.split()[1] for example in _examples()}
    assert {"design", "simulate", "evaluate", "inspect", "submit"} <= commands_with_examples
