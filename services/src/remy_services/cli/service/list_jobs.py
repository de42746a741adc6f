"""`remy-farm list`: the jobs of a coordinator."""

from __future__ import annotations

import itertools
from typing import cast

import click

from remy_farm.v1 import design_service_pb2 as messages
from remy_farm.v1 import job_pb2
from remy_services.cli.options import json_option
from remy_services.cli.output import print_json, print_table
from remy_services.cli.service.connecting import connected
from remy_services.cli.service.job_table import job_table
from remy_services.cli.service.job_words import state_name
from remy_services.cli.service.message_tree import job_tree
from remy_services.client import DesignClient

_STATES = {
    state_name(state): state
    for state in cast("list[job_pb2.JobState]", job_pb2.JobState.values())
    if state != job_pb2.JOB_STATE_UNSPECIFIED
}


@click.command("list")
@click.option(
    "--state",
    "states",
    type=click.Choice(list(_STATES), case_sensitive=False),
    multiple=True,
    help="Only jobs in this state; may be repeated.",
)
@click.option("--owner", metavar="NAME", default="", help="Only jobs of this owner.")
@click.option("--campaign", metavar="NAME", default="", help="Only jobs of this sweep.")
@click.option("--name", metavar="TEXT", default="", help="Only jobs whose name contains this.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="N",
    help="At most so many, the newest.",
)
@click.option("--all", "is_all", is_flag=True, help="All of them.")
@json_option()
@connected
def command(
    client: DesignClient,
    states: tuple[str, ...],
    owner: str,
    campaign: str,
    name: str,
    limit: int,
    is_all: bool,
    as_json: bool,
) -> None:
    """List jobs, the newest first."""
    request = messages.ListJobsRequest(
        states=[_STATES[each.lower()] for each in states],
        owner=owner,
        campaign=campaign,
        name_contains=name,
    )
    found = client.list_all(request)
    jobs = list(found if is_all else itertools.islice(found, limit))
    has_more = not is_all and next(found, None) is not None
    if as_json:
        print_json({"jobs": [job_tree(job) for job in jobs], "has_more": has_more})
        return
    print_table(job_table(jobs))
    if has_more:
        click.echo(f"the newest {limit}; --all lists the others, too", err=True)
