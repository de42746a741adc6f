"""`remy-farm watch`: a job, or all jobs of a campaign, until they end."""

from __future__ import annotations

import click

from remy_services.cli.options import json_option, threads_option
from remy_services.cli.service.connecting import connected
from remy_services.cli.service.job_options import JobName, quiet_option
from remy_services.cli.service.watching import watch_campaign_to_its_end, watch_job_to_its_end
from remy_services.client import DesignClient


@click.command("watch")
@click.argument("job", metavar="[JOB]", required=False, type=JobName())
@click.option("--campaign", metavar="NAME", help="Watch all jobs of this sweep instead.")
@click.option("--history", "with_past", is_flag=True, help="Show what has happened so far, too.")
@threads_option()
@quiet_option()
@json_option()
@connected
def command(
    client: DesignClient,
    job: str | None,
    campaign: str | None,
    with_past: bool,
    threads: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Follow a job until it ends, through restarts of the coordinator and lost connections.

    With --campaign all jobs of a sweep are followed, and their RemyCCs are compared at the end, on
    this machine, with --threads threads. Ctrl-C ends the watching; the jobs go on.
    """
    if (job is None) == (campaign is None):
        raise click.UsageError("name either a JOB or a --campaign")
    if job is not None:
        watch_job_to_its_end(client, job, quiet=quiet, as_json=as_json, with_past=with_past)
    elif campaign is not None:
        watch_campaign_to_its_end(client, campaign, threads=threads, quiet=quiet, as_json=as_json)
