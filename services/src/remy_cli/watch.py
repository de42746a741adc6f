"""`remy-farm watch`: follows a job, or all jobs of a campaign, until they end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import click
import grpc

from remy_cli import views
from remy_cli.common import (
    examples,
    flag,
    local_evaluator,
    option,
    print_json,
    print_status,
    quiet_option,
    threads_option,
)
from remy_cli.connecting import JobName, pass_client
from remy_cli.failures import ExitCode
from remy_cli.views import ProgressView, print_members, progress_view
from remy_farm.analysis import MemberRecord, compare_member, enum_name, members_dict
from remy_farm.remycc import RemyCC, from_json
from remy_farm.specification import Tree, content_digest, designed_tables, read_yaml
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
from remy_services.jobs import job_dict, state_name

#: History entries requested for the plot of scores; a long history takes long to send.
_MAX_PAST_ENTRIES = 500


def watch_one(
    client: DesignClient, name: str, view: ProgressView, *, with_past: bool = False
) -> job_pb2.Job:
    """Follows a job until it ends and returns its final state. Raises ServiceError.

    If `with_past`, the view prints the job's earlier history; otherwise it only uses the latest
    entries to plot scores.
    """
    job = client.get(name)
    view.show_job(job)
    past = 0 if with_past else job.revision
    after = 0 if with_past else max(0, job.revision - _MAX_PAST_ENTRIES)
    for update in watch_job(client.connection, job.id, after_revision=after):
        match update:
            case job_pb2.Job():
                job = update
                view.show_job(job)
            case job_pb2.JobEvent():
                view.show_event(update, is_past=update.revision <= past)
            case ConnectionLost():
                view.connection_lost(update.why)
            case ConnectionBack():
                view.connection_restored()
    return job


def compared_members(
    client: DesignClient, jobs: Sequence[job_pb2.Job], *, threads: int
) -> list[MemberRecord]:
    """Fetches the jobs' RemyCCs and evaluates each on fresh specimens of its specification.

    Failed jobs and jobs without progress are left out. Raises ServiceError, and RemyCCError for an
    invalid table.
    """
    ended = [job for job in jobs if job.state != job_pb2.JOB_STATE_FAILED and views.has_begun(job)]
    settings = _differing_settings(client, ended)
    members = []
    with local_evaluator(threads) as evaluator:
        for job in ended:
            spec = client.get(job.id).spec
            files = [
                client.remycc(
                    job.id, epoch=None, file_format=messages.REMY_CC_FORMAT_JSON, table=name
                )
                for name in designed_tables(spec)
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


def _differing_settings(
    client: DesignClient, jobs: Sequence[job_pb2.Job]
) -> dict[str, dict[str, Tree]]:
    """Returns the settings in which the jobs differ, by job id."""
    if len(jobs) < 2:
        return {}
    differences = client.compare([job.id for job in jobs]).differences
    return {
        job.id: {each.path: read_yaml(each.values[number], each.path) for each in differences}
        for number, job in enumerate(jobs)
    }


_POLL_SECONDS = 2.0


def watch_campaign(client: DesignClient, campaign: str, view: ProgressView) -> list[job_pb2.Job]:
    """Follows a campaign's jobs and returns their final states in order of submission.

    After the first answer, an unreachable coordinator is retried forever. Raises ServiceError.
    """
    is_first = True
    while True:
        try:
            jobs = _campaign_jobs(client, campaign)
        except Unreachable as error:
            if is_first:
                raise
            view.connection_lost(str(error))
            # The request itself may have a short timeout.
            time.sleep(_POLL_SECONDS)
            continue
        is_first = False
        if not jobs:
            raise Refused(f"there is no campaign {campaign!r}", grpc.StatusCode.NOT_FOUND)
        view.show_campaign(jobs)
        if all(job.state in FINAL_STATES for job in jobs):
            return jobs
        time.sleep(_POLL_SECONDS)


def _campaign_jobs(client: DesignClient, campaign: str) -> list[job_pb2.Job]:
    """Returns the campaign's jobs, oldest first."""
    return list(client.list_all(messages.ListJobsRequest(campaign=campaign)))[::-1]


def watch_job_to_its_end(
    client: DesignClient, name: str, *, quiet: bool, as_json: bool, with_past: bool
) -> None:
    """Follows a job, prints its final state, and exits."""
    with _handle_interrupt("the job continues", name), progress_view(quiet=quiet) as view:
        job = watch_one(client, name, view, with_past=with_past)
    views.print_job(job, as_json=as_json)
    _exit_after([job])


def watch_campaign_to_its_end(
    client: DesignClient, campaign: str, *, threads: int, quiet: bool, as_json: bool
) -> None:
    """Follows a campaign's jobs, prints a comparison of their RemyCCs, and exits."""
    with _handle_interrupt("the jobs continue", f"--campaign {campaign}"):
        with progress_view(quiet=quiet) as view:
            jobs = watch_campaign(client, campaign, view)
        if not quiet:
            print_status("comparing the RemyCCs on fresh specimens")
        members = compared_members(client, jobs, threads=threads)
    if as_json:
        trees = [job_dict(job) for job in jobs]
        print_json({"campaign": campaign, "jobs": trees, **members_dict(members)})
    else:
        if members:
            print_members(members)
        for job in jobs:
            if job.state != job_pb2.JOB_STATE_SUCCEEDED:
                click.echo(views.state_sentence(views.job_label(job), job))
        click.echo(f"\nto save a RemyCC: remy-farm fetch {jobs[0].id} -o FILE.json")
    _exit_after(jobs)


@contextmanager
def _handle_interrupt(message: str, watch_arguments: str) -> Iterator[None]:
    """On Ctrl-C, prints that the jobs continue and how to watch them again, and exits."""
    try:
        yield
    except KeyboardInterrupt:
        print_status(f"{message}; to watch again: remy-farm watch {watch_arguments}")
        click.get_current_context().exit(ExitCode.INTERRUPTED)


def _exit_after(jobs: list[job_pb2.Job]) -> None:
    any_failed = any(job.state != job_pb2.JOB_STATE_SUCCEEDED for job in jobs)
    click.get_current_context().exit(ExitCode.JOB_FAILED if any_failed else 0)


@click.command(
    "watch",
    epilog=examples(
        "remy-farm watch my-design",
        "remy-farm watch --campaign my-sweep",
    ),
)
@click.argument("job", metavar="[JOB]", required=False, type=JobName())
@option("--campaign NAME", "Watch all jobs of this campaign instead.")
@flag("--history", "Also show the history so far.", name="with_past")
@threads_option
@quiet_option
@pass_client
def watch_command(
    client: DesignClient,
    job: str | None,
    campaign: str | None,
    with_past: bool,
    threads: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Follow a job until it ends, across coordinator restarts and lost connections.

    With --campaign, all jobs of a sweep are followed, and their RemyCCs are finally compared on
    this machine, with --threads threads. Ctrl-C stops watching; the jobs continue.
    """
    if (job is None) == (campaign is None):
        raise click.UsageError("give either a JOB or --campaign")
    if job is not None:
        watch_job_to_its_end(client, job, quiet=quiet, as_json=as_json, with_past=with_past)
    elif campaign is not None:
        watch_campaign_to_its_end(client, campaign, threads=threads, quiet=quiet, as_json=as_json)
