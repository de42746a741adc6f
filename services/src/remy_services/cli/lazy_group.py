"""A group of commands that are imported when they are used, and that fail in one sentence."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple, NoReturn

import click
from click.shell_completion import CompletionItem

from remy_services.cli import failures


class CommandReference(NamedTuple):
    """Where a command is: the module whose `command` it is, and its line in the help text."""

    module: str
    summary: str
    #: The heading that it stands under in the help text.
    section: str = "Commands"


class LazyGroup(click.Group):
    """Help and completion of the group import no command, so that both are instant."""

    def __init__(
        self, *args: Any, references: Mapping[str, CommandReference], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._references = references

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._references)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._references:
            return None
        command: click.Command = importlib.import_module(self._references[cmd_name].module).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        by_section = groupby(self._references.items(), key=lambda entry: entry[1].section)
        for section, entries in by_section:
            with formatter.section(section):
                formatter.write_dl([(name, reference.summary) for name, reference in entries])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [
            CompletionItem(name, help=reference.summary)
            for name, reference in self._references.items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _forget_standard_output()
            ctx.exit(failures.ExitCode.BROKEN_PIPE)
        return result

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Runs the command line and ends the process; a failure is a sentence and an exit code."""
        for stream in (sys.stdout, sys.stderr):
            failures.replace_what_cannot_be_shown(stream)
        extra.pop("standalone_mode", None)
        try:
            code = super().main(args, self.name, standalone_mode=False, **extra)
        except (Exception, KeyboardInterrupt) as error:
            code = failures.report(error)
        sys.exit(code)


def _forget_standard_output() -> None:
    """Whoever read our output has left; the interpreter must not fail on what is still buffered."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
