"""`remy-farm validate`: what a specification asks for, or all that is wrong with it."""

from __future__ import annotations

import click

from remy_services.cli import failures
from remy_services.cli.options import FILE
from remy_services.spec import SpecError, load_spec, to_yaml


@click.command("validate")
@click.argument("spec_path", metavar="SPEC.yaml", type=FILE)
@click.pass_context
def command(context: click.Context, spec_path: str) -> None:
    """Check a specification, and print it complete with its defaults.

    What is wrong with it goes to standard error, one line each.
    """
    try:
        spec = load_spec(spec_path)
    except SpecError as error:
        for violation in error.violations:
            failures.complain(f"{error.source}: {violation}")
        context.exit(failures.ExitCode.BAD_INPUT)
    click.echo(f"# {spec_path} is valid; with all defaults it reads:")
    click.echo(to_yaml(spec), nl=False)
