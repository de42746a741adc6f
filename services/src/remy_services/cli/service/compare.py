"""`remy-farm compare`: jobs side by side."""

from __future__ import annotations

import click

from remy_services.cli.options import json_option
from remy_services.cli.output import plain_table, print_json, print_table
from remy_services.cli.service.connecting import connected
from remy_services.cli.service.job_options import JobName
from remy_services.cli.service.job_table import job_table
from remy_services.cli.service.message_tree import job_tree, message_tree
from remy_services.client import DesignClient


@click.command("compare")
@click.argument("jobs", metavar="JOB JOB ...", nargs=-1, required=True, type=JobName())
@json_option()
@connected
def command(client: DesignClient, jobs: tuple[str, ...], as_json: bool) -> None:
    """Show how far jobs are, and the settings in which they differ."""
    if len(jobs) < 2:
        raise click.UsageError("name at least two jobs")
    response = client.compare(jobs)
    if as_json:
        print_json(
            {
                "jobs": [job_tree(job) for job in response.jobs],
                "differences": [message_tree(each) for each in response.differences],
            }
        )
        return
    print_table(job_table(response.jobs))
    click.echo()
    if not response.differences:
        click.echo("The specifications say the same.")
        return
    names = [job.name for job in response.jobs]
    heads = [job.id for job in response.jobs] if len(set(names)) < len(names) else names
    table = plain_table("setting", *heads, left=1)
    for difference in response.differences:
        table.add_row(difference.path, *(value or "-" for value in difference.values))
    print_table(table)
