"""Tests that docs/reference/command-line.md lists all commands, options and exit codes."""

import re
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


@pytest.mark.parametrize("name", COMMANDS)
def test_command_and_its_options_are_documented(name: str) -> None:
    assert re.search(rf"^    remy-farm ([\w-]+ \| )*{name}\b", TEXT, re.MULTILINE), name
    if name in ELSEWHERE:
        return
    command = main.get_command(click.Context(main), name)
    assert command is not None
    parts = [command, *(command.commands.values() if isinstance(command, click.Group) else ())]
    parameters = [each for part in parts for each in part.params]
    flags = {flag for each in parameters for flag in each.opts if flag.startswith("--")}
    assert sorted(flag for flag in flags if flag not in TEXT) == []


@pytest.mark.parametrize("code", ExitCode)
def test_exit_code_is_documented(code: ExitCode) -> None:
    assert f"\n| {code.value} | " in TEXT
