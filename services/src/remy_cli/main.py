"""The entry point of `remy-farm`. Each command's module is imported when the command is used."""

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
    """The module that defines a command, and the command's line in the help text."""

    #: The module that defines the command, as `command` or as `<name>_command`.
    module: str
    summary: str
    #: Heading of the help text under which the command is listed.
    section: str


class LazyGroup(click.Group):
    """A group that prints help and completes names without importing any command's module."""

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
            _discard_standard_output()
            ctx.exit(failures.ExitCode.BROKEN_PIPE)
        return result

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Runs the command line, reports a failure as one sentence, and exits the process."""
        for stream in (sys.stdout, sys.stderr):
            failures.replace_unencodable_characters(stream)
        extra.pop("standalone_mode", None)
        try:
            code = super().main(args, self.name, standalone_mode=False, **extra)
        except (Exception, KeyboardInterrupt) as error:
            code = failures.report_error(error)
        sys.exit(code)


def _discard_standard_output() -> None:
    """Redirects standard output to /dev/null, so that flushing it at exit does not fail again."""
    null_device = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_device, sys.stdout.fileno())
    os.close(null_device)


_GROUP: Final = "remy_farm.commands"
_SECTION: Final = "Commands of other installed packages"


def plugin_commands() -> dict[str, CommandReference]:
    """Returns the commands of other installed packages by name, without importing them.

    A package registers a command with an entry point of the group `remy_farm.commands`. The entry
    point's name is the command's, and its value is the module that defines `command`.
    """
    return {
        point.name: CommandReference(point.value, _summary(point.dist), section=_SECTION)
        for point in entry_points(group=_GROUP)
    }


def _summary(distribution: object) -> str:
    """Returns the summary in the package's metadata."""
    metadata = getattr(distribution, "metadata", {})
    return f"{metadata.get('Summary') or 'Installed without a description'}."


#: Maps a command's name to its module in this package and its summary.
_LOCAL_COMMANDS = {
    "design": ("design", "Design a RemyCC for the networks of a specification."),
    "simulate": ("simulate", "Simulate RemyCCs and protocols on one network."),
    "play": ("play", "Show RemyCCs and protocols on a live network in a browser."),
    "protocols": ("simulate", "List the available protocols, transports and queues."),
    "evaluate": (
        "evaluate",
        "Score a RemyCC or a protocol on networks drawn from a specification.",
    ),
    "inspect": ("inspect", "Show and explain the rules of a RemyCC."),
    "convert": ("evaluate", "Convert a RemyCC between .dna and .json."),
    "export": (
        "export",
        "Export a RemyCC as .dna, as C, or as congestion control for Linux.",
    ),
    "kernel": ("kernel", "Check, verify, run and measure RemyCCs as Linux congestion control."),
    "validate": ("evaluate", "Check a specification and print it with all defaults."),
    "schema": ("schema", "Print the JSON schema of specifications, networks or studies."),
    "reproduce": ("reproduce", "Reproduce the figures of published studies."),
    "league": ("reproduce", "Compare RemyCCs and protocols on sets of networks."),
    "attack": ("robustness", "Find networks where a RemyCC scores worse than a protocol."),
    "coordinator": ("coordinator", "Run the server that runs a team's design jobs."),
    "benchmark-search": (
        "benchmark_search",
        "Compare RemyCCs, or the search, with the published RemyCCs.",
    ),
    "completion": ("evaluate", "Print a shell completion script."),
}
_JOB_COMMANDS = {
    "submit": ("submit", "Submit a design to a coordinator."),
    "list": ("jobs", "List jobs."),
    "status": ("jobs", "Show a job's progress."),
    "watch": ("watch", "Follow a job or a campaign until it ends."),
    "pause": ("submit", "Pause a job."),
    "resume": ("submit", "Resume a paused or failed job."),
    "cancel": ("submit", "Cancel a job; its best RemyCC is kept."),
    "extend": ("submit", "Increase a job's budgets, or change its priority."),
    "fork": ("submit", "Start a new job from another job's table."),
    "ui": ("ui", "Serve a web page that shows and controls a farm's jobs."),
    "delete": ("submit", "Delete a job and everything stored for it."),
    "compare": ("jobs", "Compare jobs side by side."),
    "fetch": ("jobs", "Save a job's RemyCC to a file."),
    "history": ("jobs", "Save a job's progress as CSV, JSON, Parquet or a plot."),
    "logs": ("jobs", "Show the latest log lines of a job's workers."),
    "export-job": ("submit", "Export a job and everything stored for it to a file."),
    "import-job": ("submit", "Import a job from a file written by export-job."),
    "info": ("doctor", "Show a coordinator's versions, store, workers and your role."),
    "doctor": (
        "doctor",
        "Diagnose the connection, the coordinator and its store.",
    ),
}
_COMMANDS = {
    name: CommandReference(f"remy_cli.{module}", summary, section)
    for section, commands in (
        ("Commands", _LOCAL_COMMANDS),
        ("Commands for a coordinator's jobs", _JOB_COMMANDS),
    )
    for name, (module, summary) in commands.items()
} | plugin_commands()


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
    epilog="Run 'remy-farm COMMAND --help' for a command's options.\n\n"
    "Exit codes: 0 success, 1 internal error, 2 bad input, 3 coordinator unreachable, 4 not "
    "allowed, 5 job failed, 6 refused, 130 interrupted.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the versions and exit.",
)
@click.pass_context
def main(context: click.Context) -> None:
    """Design, simulate and score RemyCC congestion control, on this machine or on a farm."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
