"""The entry point of `remy-farm`, and its commands, which are imported when they are used."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points, version
from itertools import groupby
from typing import Any, Final, NamedTuple, NoReturn

import click
from click.shell_completion import CompletionItem

from remy_cli import failures


class CommandReference(NamedTuple):
    """Where a command is, and its line in the help text."""

    #: The module that has it: as `command`, or by its name, as in `info_command`.
    module: str
    summary: str
    #: The heading that it stands under in the help text.
    section: str


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
        module = importlib.import_module(self._references[cmd_name].module)
        name = f"{cmd_name.replace('-', '_')}_command"
        command: click.Command = getattr(module, name, None) or module.command
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


_GROUP: Final = "remy_farm.commands"
_SECTION: Final = "Commands of other parts that are installed here"


def plugged_in_commands() -> dict[str, CommandReference]:
    """Commands of members that are installed beside this one, by name; nothing of them is loaded.

    A member announces a command with an entry point of the group `remy_farm.commands`: the
    command's name, and the module whose `command` it is.
    """
    return {
        point.name: CommandReference(point.value, _summary(point.dist), section=_SECTION)
        for point in entry_points(group=_GROUP)
    }


def _summary(distribution: object) -> str:
    """What the member says that it is."""
    metadata = getattr(distribution, "metadata", {})
    return f"{metadata.get('Summary') or 'Installed without a description'}."


#: By name: the module of this package, and the summary.
_LOCAL_COMMANDS = {
    "design": ("design", "Design a RemyCC for the networks of a specification."),
    "simulate": ("simulate", "Simulate RemyCCs and protocols on one network."),
    "play": ("play", "See RemyCCs and protocols on a live network, in a browser."),
    "protocols": ("simulate", "List protocols, transports and queues."),
    "evaluate": (
        "evaluate",
        "Score a RemyCC or a protocol on networks drawn from a specification.",
    ),
    "inspect": ("inspect", "Show the rules of a RemyCC: region, action, use."),
    "convert": ("evaluate", "Convert a RemyCC between .dna and .json."),
    "export": (
        "export",
        "Write a RemyCC for other programs: .dna, C, congestion control of Linux.",
    ),
    "kernel": ("kernel", "Check, verify and run RemyCCs as congestion control of Linux."),
    "validate": ("evaluate", "Check a specification and say what it asks for."),
    "schema": ("schema", "Print the JSON schema of specifications, networks or studies."),
    "reproduce": ("reproduce", "Make the figures of published studies, and compare."),
    "league": ("reproduce", "Compare RemyCCs and protocols on sets of networks."),
    "attack": ("robustness", "Find networks where a RemyCC loses against a protocol."),
    "coordinator": ("coordinator", "Serve design jobs to a team."),
    "benchmark-search": (
        "benchmark_search",
        "Measure RemyCCs, or the search, beside the published ones.",
    ),
    "completion": ("evaluate", "Print the script that has a shell complete these words."),
}
_JOB_COMMANDS = {
    "submit": ("submit", "Have a coordinator design a RemyCC."),
    "list": ("jobs", "List jobs."),
    "status": ("jobs", "Show how far a job is."),
    "watch": ("watch", "Follow a job, or a campaign, until it ends."),
    "pause": ("submit", "Have a job wait."),
    "resume": ("submit", "Have a paused job go on."),
    "cancel": ("submit", "End a job; its best RemyCC stays."),
    "extend": ("submit", "Give a job larger budgets, or another priority."),
    "fork": ("submit", "Begin a new job with a table of another's."),
    "ui": ("ui", "See and steer a farm's jobs, in a browser."),
    "delete": ("submit", "Remove a job and all that is stored of it."),
    "compare": ("jobs", "Show jobs side by side."),
    "fetch": ("jobs", "Write a job's RemyCC to a file."),
    "history": ("jobs", "Write a job's progress as CSV, JSON, Parquet or a plot."),
    "logs": ("jobs", "Show the last lines that a job's workers have logged."),
    "export-job": ("submit", "Write a job with everything stored of it to a file."),
    "import-job": ("submit", "Store a job that was exported."),
    "info": ("doctor", "Show what a coordinator says of itself."),
    "doctor": (
        "doctor",
        "Check the connection, the coordinator and its store, and say what to do.",
    ),
}
_COMMANDS = {
    name: CommandReference(f"remy_cli.{module}", summary, section)
    for section, commands in (
        ("Commands", _LOCAL_COMMANDS),
        ("Commands for a coordinator's jobs", _JOB_COMMANDS),
    )
    for name, (module, summary) in commands.items()
} | plugged_in_commands()


def _print_version(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        click.echo(f"remy-farm {version('remy-farm')} (simulator {version('remy-simulator')})")
        context.exit()


@click.group(
    cls=LazyGroup,
    references=_COMMANDS,
    name="remy-farm",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 internal error, 2 bad input, 3 coordinator unreachable, 4 not "
    "allowed, 5 job failed, 6 refused, 130 interrupted.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the versions and exit.",
)
@click.pass_context
def main(context: click.Context) -> None:
    """Design, simulate and score RemyCC congestion control, on this machine or on a farm."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
