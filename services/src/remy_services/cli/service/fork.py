"""`remy-farm fork`: a new job from another's epoch."""

from __future__ import annotations

import click

from remy_farm.v1 import design_service_pb2 as messages
from remy_services.cli.options import json_option
from remy_services.cli.service.connecting import connected
from remy_services.cli.service.job_options import job_argument
from remy_services.cli.service.job_output import print_change
from remy_services.client import DesignClient


@click.command("fork")
@job_argument()
@click.option(
    "--epoch",
    type=click.IntRange(0, 2**32 - 1),
    metavar="E",
    help="Begin with the table of this epoch instead of the best so far.",
)
@click.option("--name", metavar="NAME", default="", help="Of the new job.  [default: as JOB's]")
@click.option("--priority", type=click.IntRange(-(2**31), 2**31 - 1), metavar="P")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="PATH=VALUE",
    help="A setting that differs, as objective.delta=0.1; may be repeated.",
)
@json_option()
@connected
def command(
    client: DesignClient,
    job: str,
    epoch: int | None,
    name: str,
    priority: int | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Begin a new job with a table of another's, for other networks or another objective."""
    new = client.fork(
        messages.ForkJobRequest(
            job=job, epoch=epoch, name=name, settings=settings, priority=priority
        )
    )
    print_change(new, as_json=as_json)
    if not as_json:
        click.echo(f"to watch: remy-farm watch {new.id}", err=True)
