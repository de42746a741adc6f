"""Commands that make and change jobs: submit, fork, extend, pause, cancel, delete, import."""

from __future__ import annotations

import re
import secrets
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click

from remy_cli import views
from remy_cli.common import (
    COUNT,
    FILE,
    POSITIVE,
    option,
    print_json,
    quiet_option,
    settings_option,
    sweeps_option,
    switch,
    threads_option,
)
from remy_cli.connecting import connected, job_argument
from remy_cli.failures import complain
from remy_cli.views import print_change
from remy_cli.watch import watch_campaign_to_its_end, watch_job_to_its_end
from remy_farm.analysis import several
from remy_farm.files import read_file, write_file
from remy_farm.specification import load_spec, load_tree, recordings_of
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2, spec_pb2
from remy_services.client import (
    MOST_ARCHIVE_BYTES,
    DesignClient,
    ServiceError,
    export_job,
    import_job,
    upload_trace,
)
from remy_services.jobs import job_tree

_LONGEST_NAME = 100
_PRIORITY = click.IntRange(-(2**31), 2**31 - 1)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


def submissions(
    path: str, *, sweeps: Sequence[str], name: str | None, priority: int, weight: float | None
) -> list[messages.SubmitJobRequest]:
    """A request for each combination of the sweeps' values; one if there are none.

    The requests of a sweep share a campaign's name that no other sweep has. Raises SpecError or
    FileError.
    """
    if not sweeps:
        spec = load_spec(path)
        return [
            messages.SubmitJobRequest(spec=spec, name=name or "", priority=priority, weight=weight)
        ]
    # Campaigns are also compared, and what compares takes long to import.
    from remy_farm.analysis import members_of, parse_sweep

    members = members_of(
        load_tree(path),
        [parse_sweep(each) for each in sweeps],
        source=path,
        folder=Path(path).parent,
    )
    base = name or members[0].spec.name
    campaign = f"{base[: _LONGEST_NAME - 7]}-{secrets.token_hex(3)}"
    return [
        messages.SubmitJobRequest(
            spec=member.spec,
            name=_member_name(base, member.name, number),
            priority=priority,
            weight=weight,
            campaign=campaign,
            client_request_id=f"{campaign}/{number}",
        )
        for number, member in enumerate(members, start=1)
    ]


def _member_name(base: str, settings: str, number: int) -> str:
    """As in "demo_delta-0.1_seed-2"; numbered where that is too long."""
    words = [_NOT_IN_NAMES.sub("-", setting) for setting in settings.split(",")]
    name = "_".join([base, *words])
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{base[: _LONGEST_NAME - 6]}_{number}"


@click.command("submit")
@click.argument("spec_path", metavar="SPEC.yaml", type=FILE)
@switch("--watch", "Then follow the job until it ends.", name="is_watched")
@option("--name NAME", "Of the job, in place of the specification's.")
@option("--priority P", "Jobs of higher priority run first.", _PRIORITY, default=0)
@option(
    "--weight W",
    "Share of the evaluators among running jobs of equal priority.",
    POSITIVE,
    show_default="1",
)
@option("--queue-name NAME", "Queue of Kueue for its workers, on Kubernetes.", default="")
@sweeps_option("Submit a job")
@switch("--validate-only", "Have everything checked, and submit nothing.")
@threads_option
@quiet_option
@connected
def submit_command(
    client: DesignClient,
    spec_path: str,
    is_watched: bool,
    name: str | None,
    priority: int,
    weight: float | None,
    queue_name: str,
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
        request.validate_only, request.queue_name = validate_only, queue_name
    if not validate_only:
        _upload_traces(client, requests)
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


def _upload_traces(client: DesignClient, requests: list[messages.SubmitJobRequest]) -> None:
    """Sends the recordings that specifications name, each once."""
    recordings = {
        recording.sha256: recording
        for request in requests
        for recording in recordings_of(request.spec)
    }
    for recording in recordings.values():
        upload_trace(client.connection, recording.opportunities_us)


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
        click.echo(f"{views.called(job)} is submitted", err=on_standard_error)
    if campaign:
        click.echo(f"the campaign is {campaign}", err=on_standard_error)


@click.command("fork")
@job_argument
@option(
    "--epoch E",
    "Begin with the table of this epoch instead of the best so far.",
    click.IntRange(0, 2**32 - 1),
)
@option("--name NAME", "Of the new job.", default="", show_default="as JOB's")
@option("--priority P", "Of the new job.", _PRIORITY, show_default="as JOB's")
@settings_option("A setting that differs, as objective.delta=0.1; may be repeated.")
@connected
def fork_command(
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


@click.command("extend")
@job_argument
@option("--max-epochs N", "End after N epochs in all.", COUNT, name="epochs")
@option("--max-rules N", "End with N rules (mode paper).", COUNT, name="rules")
@option("--max-steps N", "End after N steps in all.", COUNT, name="steps")
@option(
    "--max-cpu-seconds S", "End after S seconds of CPU time in all.", POSITIVE, name="cpu_seconds"
)
@option(
    "--max-wall-seconds S", "End after running S seconds in all.", POSITIVE, name="wall_seconds"
)
@option("--epochs-without-gain N", "End after N epochs without a gain.", COUNT)
@option(
    "--steps N",
    "The whole schedule's length in place of search.joint.steps.",
    COUNT,
    name="joint_steps",
)
@option("--priority P", "Jobs of higher priority run first.", _PRIORITY)
@connected
def extend_command(
    client: DesignClient,
    job: str,
    joint_steps: int | None,
    priority: int | None,
    as_json: bool,
    **budgets: float | None,
) -> None:
    """Give a job larger budgets, or another priority.

    One that has ended goes on with larger budgets, under the same id. What is not named stays as it
    is.
    """
    # The options have the names of the stop rules.
    given = {name: value for name, value in budgets.items() if value is not None}
    if not given and joint_steps is None and priority is None:
        raise click.UsageError("name at least one budget, as in --max-epochs 20")
    found = client.get(job)
    stop = None
    if given:
        stop = spec_pb2.Stop()
        stop.CopyFrom(found.spec.stop)
        for name, value in given.items():
            setattr(stop, name, value)
    print_change(
        client.extend(found.id, stop=stop, joint_steps=joint_steps, priority=priority),
        as_json=as_json,
    )


def changing_command(
    name: str, change: Callable[[DesignClient, str], job_pb2.Job], help_text: str
) -> click.Command:
    """A command that makes one request about one job and shows the job's new state."""

    @click.command(name, help=help_text)
    @job_argument
    @connected
    def command(client: DesignClient, job: str, as_json: bool) -> None:
        print_change(change(client, job), as_json=as_json)

    return command


pause_command = changing_command(
    "pause",
    DesignClient.pause,
    "Have a job keep what it has and evaluate nothing until it is resumed.",
)


resume_command = changing_command(
    "resume",
    DesignClient.resume,
    "Have a job that is paused, or that failed for a cause which was put right, go on.",
)


cancel_command = changing_command(
    "cancel", DesignClient.cancel, "End a job. Its best table stays, and 'extend' has it go on."
)


@click.command("delete")
@job_argument
@switch("--yes", "Do not ask.")
@connected
def delete_command(client: DesignClient, job: str, yes: bool, as_json: bool) -> None:
    """Remove a job that has ended or is paused, with its history and tables."""
    if not yes and (as_json or not sys.stdin.isatty()):
        raise click.UsageError("delete asks first, and there is nobody to ask; add --yes")
    found = client.get(job)
    if not yes:
        question = f"Delete {views.called(found)}, {views.place(found)}, for good?"
        click.confirm(question, abort=True, err=True)
    client.delete(found.id)
    if as_json:
        print_json({"deleted": found.id, "name": found.name})
    else:
        click.echo(f"{views.called(found)} is deleted")


@click.command("export-job")
@job_argument
@option("--out -o FILE", "The archive.", FILE, required=True)
@connected
def export_job_command(client: DesignClient, job: str, out: str, as_json: bool) -> None:
    """Write a job's specification, history, tables and last checkpoint to one file.

    import-job has another coordinator go on with it.
    """
    content = export_job(client.connection, job)
    write_file(out, content)
    if as_json:
        print_json({"job": job, "file": out, "bytes": len(content)})
    else:
        click.echo(f"{out}: {job}, {len(content)} bytes")


@click.command("import-job")
@click.argument("archive", metavar="FILE", type=FILE)
@connected
def import_job_command(client: DesignClient, archive: str, as_json: bool) -> None:
    """Store a job that export-job wrote; it is paused if it had not ended."""
    content = read_file(archive, limit=MOST_ARCHIVE_BYTES)
    print_change(import_job(client.connection, content, source=archive), as_json=as_json)
