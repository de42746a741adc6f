"""`remy-farm schema`: prints the JSON schemas of input files."""

from __future__ import annotations

import click

from remy_cli.common import examples
from remy_farm.shipped import SCHEMAS, shipped_schema


@click.command(
    "schema",
    epilog=examples(
        "remy-farm schema > specification.json",
    ),
)
@click.argument("kind", type=click.Choice(SCHEMAS), default=SCHEMAS[0], metavar="[KIND]")
def schema_command(kind: str) -> None:
    """Print the JSON schema of specifications, networks or studies, for editors.

    KIND is specification, network or study. A YAML editor completes and checks a file whose first
    line names its schema, e.g. `# yaml-language-server: $schema=specification.json`.
    """
    click.echo(shipped_schema(kind).read_text(encoding="utf-8"), nl=False)
