"""The entry point of `remy-farm`."""

from __future__ import annotations

from importlib.metadata import version

import click

from remy_services.cli.lazy_group import CommandReference, LazyGroup

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
}


def _print_version(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        click.echo(f"remy-farm {version('remy-farm')} (simulator {version('remy-simulator')})")
        context.exit()


@click.group(
    cls=LazyGroup,
    references=_COMMANDS,
    name="remy-farm",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 internal error, 2 bad input, 130 interrupted.",
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
    """Design, simulate and score RemyCC congestion control on this machine."""
