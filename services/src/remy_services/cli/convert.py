"""`remy-farm convert`: between the reference tool's format and ours."""

from __future__ import annotations

import click

from remy_services.cli.options import FILE
from remy_services.remycc import read_remycc, write_remycc


@click.command("convert")
@click.argument("source", metavar="IN", type=FILE)
@click.argument("target", metavar="OUT", type=FILE)
def command(source: str, target: str) -> None:
    """Convert the RemyCC in IN to OUT; the endings .dna and .json say which format is which.

    OUT is replaced in one step, or left as it was.
    """
    write_remycc(target, read_remycc(source))
