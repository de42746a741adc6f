"""`remy-farm delete`: a job and all that is stored of it."""

from __future__ import annotations

import sys

import click

from remy_services.cli.options import json_option
from remy_services.cli.output import print_json
from remy_services.cli.service import job_words
from remy_services.cli.service.connecting import connected
from remy_services.cli.service.job_options import job_argument
from remy_services.client import DesignClient


@click.command("delete")
@job_argument()
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option()
@connected
def command(client: DesignClient, job: str, yes: bool, as_json: bool) -> None:
    """Remove a job that has ended or is paused, with its history and tables."""
    if not yes and (as_json or not sys.stdin.isatty()):
        raise click.UsageError("delete asks first, and there is nobody to ask; add --yes")
    found = client.get(job)
    if not yes:
        question = f"Delete {job_words.called(found)}, {job_words.place(found)}, for good?"
        click.confirm(question, abort=True, err=True)
    client.delete(found.id)
    if as_json:
        print_json({"deleted": found.id, "name": found.name})
    else:
        click.echo(f"{job_words.called(found)} is deleted")
