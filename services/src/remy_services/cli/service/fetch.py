"""`remy-farm fetch`: a job's RemyCC as a file."""

from __future__ import annotations

from pathlib import Path

import click

from remy_farm.v1 import design_service_pb2 as messages
from remy_services.cli.options import FILE, json_option
from remy_services.cli.output import print_json
from remy_services.cli.service.connecting import connected
from remy_services.cli.service.job_options import job_argument
from remy_services.client import DesignClient
from remy_services.files import write_file
from remy_services.report.wording import several

_FORMATS = {
    ".json": messages.REMY_CC_FORMAT_JSON,
    ".dna": messages.REMY_CC_FORMAT_DNA,
}


@click.command("fetch")
@job_argument()
@click.option(
    "--epoch",
    type=click.IntRange(0, 2**32 - 1),
    metavar="E",
    help="The table of this epoch instead of the best so far.",
)
@click.option(
    "--out", "-o", required=True, type=FILE, metavar="FILE", help="A .json or a .dna file."
)
@json_option()
@connected
def command(client: DesignClient, job: str, epoch: int | None, out: str, as_json: bool) -> None:
    """Write a job's RemyCC to a file, complete or not at all."""
    file_format = _FORMATS.get(Path(out).suffix.lower())
    if file_format is None:
        raise click.UsageError(f"{out} must be a name that ends in .json or .dna")
    response = client.remycc(job, epoch=epoch, file_format=file_format)
    write_file(out, response.content)
    if as_json:
        print_json(
            {
                "job": job,
                "epoch": epoch,
                "file": out,
                "rules": response.rules,
                "sha256": response.sha256.hex(),
            }
        )
    else:
        click.echo(f"{out}: {several(response.rules, 'rule')}")
