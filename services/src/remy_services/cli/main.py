"""The entry point of `remy-farm`."""

from __future__ import annotations

from importlib.metadata import version

import click

from remy_services.cli.lazy_group import CommandReference, LazyGroup
from remy_services.cli.plugged_in import plugged_in_commands

_COMMANDS = {
    "design": CommandReference(
        "remy_services.cli.design", "Design a RemyCC for the networks of a specification."
    ),
    "simulate": CommandReference("remy_services.cli.simulate", "Simulate RemyCCs on one network."),
    "evaluate": CommandReference(
        "remy_services.cli.evaluate", "Score a RemyCC on networks drawn from a specification."
    ),
    "inspect": CommandReference(
        "remy_services.cli.inspect", "Show the rules of a RemyCC: region, action, use."
    ),
    "convert": CommandReference(
        "remy_services.cli.convert", "Convert a RemyCC between .dna and .json."
    ),
    "validate": CommandReference(
        "remy_services.cli.validate", "Check a specification and say what it asks for."
    ),
    "coordinator": CommandReference(
        "remy_services.cli.coordinator_command", "Serve design jobs to a team."
    ),
    "benchmark-search": CommandReference(
        "remy_services.cli.benchmark_search",
        "Measure RemyCCs, or the search, beside the published ones.",
    ),
    "completion": CommandReference(
        "remy_services.cli.completion", "Print the script that has a shell complete these words."
    ),
}

_SERVICE_COMMANDS = {
    "submit": "Have a coordinator design a RemyCC.",
    "list": "List jobs.",
    "status": "Show how far a job is.",
    "watch": "Follow a job, or a campaign, until it ends.",
    "pause": "Have a job wait.",
    "resume": "Have a paused job go on.",
    "cancel": "End a job; its best RemyCC stays.",
    "extend": "Give a job larger budgets.",
    "fork": "Begin a new job with a table of another's.",
    "delete": "Remove a job and all that is stored of it.",
    "compare": "Show jobs side by side.",
    "fetch": "Write a job's RemyCC to a file.",
    "history": "Write a job's progress as CSV, JSON, Parquet or a plot.",
    "export-job": "Write a job with everything stored of it to a file.",
    "import-job": "Store a job that was exported.",
    "info": "Show what a coordinator says of itself.",
    "doctor": "Check the connection, the coordinator and its store, and say what to do.",
}
_MODULES = {"list": "list_jobs"}

_COMMANDS |= {
    name: CommandReference(
        f"remy_services.cli.service.{_MODULES.get(name, name.replace('-', '_'))}",
        summary,
        section="Commands for a coordinator's jobs",
    )
    for name, summary in _SERVICE_COMMANDS.items()
}
_COMMANDS |= plugged_in_commands()


def _print_version(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        click.echo(f"remy-farm {version('remy-farm')} (simulator {version('remy-simulator')})")
        context.exit()


@click.group(
    cls=LazyGroup,
    references=_COMMANDS,
    name="remy-farm",
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
def main() -> None:
    """Design, simulate and score RemyCC congestion control, on this machine or on a farm."""
