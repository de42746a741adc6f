"""`remy-farm watch`: a job, or all jobs of a campaign, until they end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click
import grpc

from remy_cli import views
from remy_cli.common import (
    local_evaluator,
    option,
    print_json,
    quiet_option,
    say,
    switch,
    threads_option,
)
from remy_cli.connecting import JobName, connected
from remy_cli.failures import ExitCode
from remy_cli.views import ProgressView, print_members, progress_view
from remy_farm.analysis import MemberRecord, compare_member, enum_name, members_tree
from remy_farm.remycc import RemyCC, from_json
from remy_farm.specification import Tree, content_digest, designs, read_yaml
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2, progress_pb2
from remy_services.client import (
    FINAL_STATES,
    ConnectionBack,
    ConnectionLost,
    DesignClient,
    Refused,
    Unreachable,
    watch_job,
)
from remy_services.jobs import job_tree, state, state_name

# What draws the score's course; more would take long to send of an old job.
_ENTRIES_OF_THE_PAST = 500


def watch_one(
    client: DesignClient, name: str, view: ProgressView, *, with_past: bool = False
) -> job_pb2.Job:
    """The job as it ended. Raises ServiceError.

    What happened before is shown if `with_past`, and otherwise is known to the view alone.
    """
    job = client.get(name)
    view.job(job)
    past = 0 if with_past else job.revision
    after = 0 if with_past else max(0, job.revision - _ENTRIES_OF_THE_PAST)
    for update in watch_job(client.connection, job.id, after_revision=after):
        match update:
            case job_pb2.Job():
                job = update
                view.job(job)
            case job_pb2.JobEvent():
                view.event(update, is_past=update.revision <= past)
            case ConnectionLost():
                view.lost(update.why)
            case ConnectionBack():
                view.back()
    return job


def compared_members(
    client: DesignClient, jobs: Sequence[job_pb2.Job], *, threads: int
) -> list[MemberRecord]:
    """Fetches the RemyCCs of the jobs that have one, and tries each on its own fresh specimens.

    Raises ServiceError, and RemyCCError for a table that is none.
    """
    ended = [job for job in jobs if job.state != job_pb2.JOB_STATE_FAILED and views.has_begun(job)]
    settings = _settings(client, ended)
    members = []
    with local_evaluator(threads) as evaluator:
        for job in ended:
            spec = client.get(job.id).spec
            files = [
                client.remycc(
                    job.id, epoch=None, file_format=messages.REMY_CC_FORMAT_JSON, table=name
                )
                for name in designs(spec)
            ]
            tables = [RemyCC.from_message(from_json(file.content)).table for file in files]
            comparison = compare_member(spec, tables, evaluate=evaluator.evaluate)
            members.append(
                MemberRecord(
                    name=job.name,
                    settings=settings.get(job.id, {}),
                    spec_digest=content_digest(spec),
                    reason=enum_name(progress_pb2.StopReason.DESCRIPTOR, job.stop_reason)
                    or state_name(job.state),
                    steps=job.progress.step,
                    epochs=job.progress.epoch,
                    rules=tables[0].rule_count,
                    cpu_seconds=job.progress.cpu_seconds,
                    wall_seconds=job.progress.wall_seconds,
                    comparison=comparison,
                )
            )
    return members


def _settings(client: DesignClient, jobs: Sequence[job_pb2.Job]) -> dict[str, dict[str, Tree]]:
    """By job: the settings in which the jobs differ."""
    if len(jobs) < 2:
        return {}
    differences = client.compare([job.id for job in jobs]).differences
    return {
        job.id: {each.path: read_yaml(each.values[number], each.path) for each in differences}
        for number, job in enumerate(jobs)
    }


_SECONDS_BETWEEN_LOOKS = 2.0


def watch_campaign(client: DesignClient, campaign: str, view: ProgressView) -> list[job_pb2.Job]:
    """The jobs as they ended, in the order of their submission. Raises ServiceError.

    A coordinator that goes away is waited for without end, if it has been there once.
    """
    is_first = True
    while True:
        try:
            jobs = _jobs(client, campaign)
        except Unreachable as error:
            if is_first:
                raise
            view.lost(str(error))
            # With little patience of its own, the request has not waited.
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            continue
        is_first = False
        if not jobs:
            raise Refused(f"there is no campaign {campaign!r}", grpc.StatusCode.NOT_FOUND)
        view.campaign(jobs)
        if all(job.state in FINAL_STATES for job in jobs):
            return jobs
        time.sleep(_SECONDS_BETWEEN_LOOKS)


def _jobs(client: DesignClient, campaign: str) -> list[job_pb2.Job]:
    """Oldest first."""
    return list(client.list_all(messages.ListJobsRequest(campaign=campaign)))[::-1]


def watch_job_to_its_end(
    client: DesignClient, name: str, *, quiet: bool, as_json: bool, with_past: bool
) -> None:
    """Follows a job, prints it as it ended, and ends the command."""
    with _may_be_left("the job goes on", name), progress_view(quiet=quiet) as view:
        job = watch_one(client, name, view, with_past=with_past)
    views.print_job(job, as_json=as_json)
    _exit_after([job])


def watch_campaign_to_its_end(
    client: DesignClient, campaign: str, *, threads: int, quiet: bool, as_json: bool
) -> None:
    """Follows a campaign's jobs, prints how their RemyCCs compare, and ends the command."""
    with _may_be_left("the jobs go on", f"--campaign {campaign}"):
        with progress_view(quiet=quiet) as view:
            jobs = watch_campaign(client, campaign, view)
        if not quiet:
            say("comparing the RemyCCs on fresh specimens")
        members = compared_members(client, jobs, threads=threads)
    if as_json:
        trees = [job_tree(job) for job in jobs]
        print_json({"campaign": campaign, "jobs": trees, **members_tree(members)})
    else:
        if members:
            print_members(members)
        for job in jobs:
            if job.state != job_pb2.JOB_STATE_SUCCEEDED:
                click.echo(f"{views.called(job)} is {state(job)}")
        click.echo(f"\nto keep a RemyCC: remy-farm fetch {jobs[0].id} -o FILE.json")
    _exit_after(jobs)


@contextmanager
def _may_be_left(what_goes_on: str, words: str) -> Iterator[None]:
    """Has Ctrl-C say that nothing ends but the watching."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"{what_goes_on}; to watch again: remy-farm watch {words}")
        click.get_current_context().exit(ExitCode.INTERRUPTED)


def _exit_after(jobs: list[job_pb2.Job]) -> None:
    has_failed = any(job.state != job_pb2.JOB_STATE_SUCCEEDED for job in jobs)
    click.get_current_context().exit(ExitCode.JOB_FAILED if has_failed else 0)


@click.command("watch")
@click.argument("job", metavar="[JOB]", required=False, type=JobName())
@option("--campaign NAME", "Watch all jobs of this sweep instead.")
@switch("--history", "Show what has happened so far, too.", name="with_past")
@threads_option
@quiet_option
@connected
def watch_command(
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
