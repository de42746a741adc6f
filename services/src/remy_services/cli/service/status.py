"""`remy-farm status`: one job."""

from __future__ import annotations

import click

from remy_services.cli.options import json_option
from remy_services.cli.service.connecting import connected
from remy_services.cli.service.job_options import job_argument
from remy_services.cli.service.job_output import print_job
from remy_services.client import DesignClient


@click.command("status")
@job_argument()
@json_option()
@connected
def command(client: DesignClient, job: str, as_json: bool) -> None:
    """Show how far a job is, and with --json its specification, too.

    JOB is a job's id, or its name where that is unambiguous.
    """
    print_job(client.get(job), as_json=as_json)
