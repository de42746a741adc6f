"""`remy-farm submit`: a design job for a coordinator."""

from __future__ import annotations

import click

from remy_farm.v1 import design_service_pb2 as messages
from remy_farm.v1 import job_pb2
from remy_services.cli.failures import complain
from remy_services.cli.options import FILE, FiniteRange, json_option, threads_option
from remy_services.cli.output import print_json
from remy_services.cli.service import job_words
from remy_services.cli.service.connecting import connected
from remy_services.cli.service.job_options import quiet_option
from remy_services.cli.service.message_tree import job_tree
from remy_services.cli.service.submission import submissions
from remy_services.cli.service.watching import watch_campaign_to_its_end, watch_job_to_its_end
from remy_services.client import DesignClient, ServiceError
from remy_services.report.wording import several


@click.command("submit")
@click.argument("spec_path", metavar="SPEC.yaml", type=FILE)
@click.option("--watch", "is_watched", is_flag=True, help="Then follow the job until it ends.")
@click.option("--name", metavar="NAME", help="Of the job, in place of the specification's.")
@click.option(
    "--priority",
    type=click.IntRange(-(2**31), 2**31 - 1),
    default=0,
    show_default=True,
    metavar="P",
    help="Jobs of higher priority run first.",
)
@click.option(
    "--weight",
    type=FiniteRange(min=0, min_open=True),
    metavar="W",
    help="Share of the evaluators among running jobs of equal priority.  [default: 1]",
)
@click.option(
    "--sweep",
    "sweeps",
    multiple=True,
    metavar="PATH=V,V,...",
    help="Submit a job for each of these values of a setting, as objective.delta=0.1,1,10; with "
    "several sweeps, for each combination.",
)
@click.option("--validate-only", is_flag=True, help="Have everything checked, and submit nothing.")
@threads_option()
@quiet_option()
@json_option()
@connected
def command(
    client: DesignClient,
    spec_path: str,
    is_watched: bool,
    name: str | None,
    priority: int,
    weight: float | None,
    sweeps: tuple[str, ...],
    validate_only: bool,
    threads: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Have a coordinator design a RemyCC, as 'design' would here.

    A submission that meets a coordinator which is restarting is repeated, and makes one job.

    With --sweep there is a job for each combination of the values; together they are a campaign.
    --watch follows all of them and compares their RemyCCs at the end, on this machine, with
    --threads threads.
    """
    if is_watched and validate_only:
        raise click.UsageError("--watch and --validate-only exclude each other")
    requests = submissions(spec_path, sweeps=sweeps, name=name, priority=priority, weight=weight)
    for request in requests:
        request.validate_only = validate_only
    jobs = _submit(client, requests)
    campaign = requests[0].campaign
    if is_watched:
        if not quiet:
            _say_submitted(jobs, campaign, on_standard_error=True)
        if campaign:
            watch_campaign_to_its_end(
                client, campaign, threads=threads, quiet=quiet, as_json=as_json
            )
        else:
            watch_job_to_its_end(client, jobs[0].id, quiet=quiet, as_json=as_json, with_past=True)
    elif as_json:
        trees = [job_tree(job) for job in jobs]
        print_json({"campaign": campaign, "jobs": trees} if campaign else trees[0])
    elif validate_only:
        click.echo(f"the coordinator would accept {several(len(jobs), 'job')}")
    else:
        _say_submitted(jobs, campaign)
        what = f"--campaign {campaign}" if campaign else jobs[0].id
        click.echo(f"to watch: remy-farm watch {what}", err=True)


def _submit(client: DesignClient, requests: list[messages.SubmitJobRequest]) -> list[job_pb2.Job]:
    """In order. What was submitted before a failure stays submitted, and is said."""
    jobs: list[job_pb2.Job] = []
    for request in requests:
        try:
            jobs.append(client.submit(request))
        except ServiceError:
            if jobs and not request.validate_only:
                complain(
                    f"{len(jobs)} of {several(len(requests), 'job')} were submitted before this, "
                    f"as the campaign {request.campaign}"
                )
            raise
    return jobs


def _say_submitted(
    jobs: list[job_pb2.Job], campaign: str, *, on_standard_error: bool = False
) -> None:
    for job in jobs:
        click.echo(f"{job_words.called(job)} is submitted", err=on_standard_error)
    if campaign:
        click.echo(f"the campaign is {campaign}", err=on_standard_error)
