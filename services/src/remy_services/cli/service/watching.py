"""Watching as commands do it: a view meanwhile, the result at the end, Ctrl-C in between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from remy_farm.v1 import job_pb2
from remy_services.cli.failures import ExitCode
from remy_services.cli.output import print_json
from remy_services.cli.service.campaign_views import campaign_view
from remy_services.cli.service.campaign_watch import watch_campaign
from remy_services.cli.service.job_output import print_job
from remy_services.cli.service.watch_one import watch_one
from remy_services.cli.service.watch_views import watch_view
from remy_services.client import DesignClient


def watch_job_to_its_end(
    client: DesignClient, name: str, *, quiet: bool, as_json: bool, with_past: bool
) -> None:
    """Follows a job, prints it as it ended, and ends the command."""
    with _may_be_left("the job goes on", name), watch_view(quiet=quiet) as view:
        job = watch_one(client, name, view, with_past=with_past)
    print_job(job, as_json=as_json)
    _exit_after([job])


def watch_campaign_to_its_end(
    client: DesignClient, campaign: str, *, threads: int, quiet: bool, as_json: bool
) -> None:
    """Follows a campaign's jobs, prints how their RemyCCs compare, and ends the command."""
    # What compares takes longer to import than a short command takes to run.
    from remy_services.cli.service.campaign_result import campaign_result, print_campaign

    with _may_be_left("the jobs go on", f"--campaign {campaign}"):
        with campaign_view(quiet=quiet) as view:
            jobs = watch_campaign(client, campaign, view)
        if not quiet:
            click.echo("comparing the RemyCCs on fresh specimens", err=True)
        result = campaign_result(client, campaign, jobs, threads=threads)
    if as_json:
        print_json(result.tree())
    else:
        print_campaign(result)
    _exit_after(jobs)


@contextmanager
def _may_be_left(what_goes_on: str, words: str) -> Iterator[None]:
    """Has Ctrl-C say that nothing ends but the watching."""
    try:
        yield
    except KeyboardInterrupt:
        again = f"{what_goes_on}; to watch again: remy-farm watch {words}"
        click.echo(again, err=True)
        click.get_current_context().exit(ExitCode.INTERRUPTED)


def _exit_after(jobs: list[job_pb2.Job]) -> None:
    has_failed = any(job.state != job_pb2.JOB_STATE_SUCCEEDED for job in jobs)
    click.get_current_context().exit(ExitCode.JOB_FAILED if has_failed else 0)
