"""docs/reference/command-line.md names what there is."""

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
# Settings of what runs for long are many, and told by --help.
ELSEWHERE = {"coordinator", "worker"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_its_flags(name: str) -> None:
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
def test_every_exit_code(code: ExitCode) -> None:
    assert f"\n| {code.value} | " in TEXT
