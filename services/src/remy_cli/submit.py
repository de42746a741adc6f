"""Commands that create, change, export and delete jobs."""

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
    examples,
    flag,
    option,
    print_json,
    quiet_option,
    settings_option,
    sweeps_option,
    threads_option,
)
from remy_cli.connecting import job_argument, pass_client
from remy_cli.failures import print_error
from remy_cli.views import print_change
from remy_cli.watch import watch_campaign_to_its_end, watch_job_to_its_end
from remy_farm.analysis import plural
from remy_farm.files import read_file, write_file
from remy_farm.specification import link_traces, load_spec, load_tree
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2, spec_pb2
from remy_services.client import (
    MAX_ARCHIVE_BYTES,
    DesignClient,
    ServiceError,
    export_job,
    import_job,
    upload_trace,
)
from remy_services.jobs import job_dict

_MAX_NAME_LENGTH = 100
_PRIORITY = click.IntRange(-(2**31), 2**31 - 1)
_INVALID_NAME_CHARACTERS = re.compile(r"[^A-Za-z0-9._-]+")


def submissions(
    path: str, *, sweeps: Sequence[str], name: str | None, priority: int, weight: float | None
) -> list[messages.SubmitJobRequest]:
    """Returns one request per combination of the sweeps' values, or one without sweeps.

    The requests of a sweep share a unique campaign name. Raises SpecError or FileError.
    """
    if not sweeps:
        spec = load_spec(path)
        return [
            messages.SubmitJobRequest(spec=spec, name=name or "", priority=priority, weight=weight)
        ]
    # Imported here because the analysis package is slow to import.
    from remy_farm.analysis import members_of, parse_sweep

    members = members_of(
        load_tree(path),
        [parse_sweep(each) for each in sweeps],
        source=path,
        folder=Path(path).parent,
    )
    base = name or members[0].spec.name
    campaign = f"{base[: _MAX_NAME_LENGTH - 7]}-{secrets.token_hex(3)}"
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
    """Returns a job name such as "demo_delta-0.1_seed-2", or a numbered one if that is too long."""
    suffixes = [_INVALID_NAME_CHARACTERS.sub("-", setting) for setting in settings.split(",")]
    name = "_".join([base, *suffixes])
    if len(name) <= _MAX_NAME_LENGTH:
        return name
    return f"{base[: _MAX_NAME_LENGTH - 6]}_{number}"


@click.command(
    "submit",
    epilog=examples(
        "remy-farm submit spec.yaml --watch",
        "remy-farm submit spec.yaml --sweep objective.delta=0.1,1,10",
    ),
)
@click.argument("spec_path", metavar="SPEC.yaml", type=FILE)
@flag("--watch", "Follow the job until it ends.", name="is_watched")
@option("--name NAME", "Name of the job; overrides the specification's.")
@option("--priority P", "Jobs of higher priority run first.", _PRIORITY, default=0)
@option(
    "--weight W",
    "Share of the evaluators among running jobs of equal priority.",
    POSITIVE,
    show_default="1",
)
@option("--queue-name NAME", "Kueue queue of the job's workers, on Kubernetes.", default="")
@sweeps_option("Submit a job")
@flag("--validate-only", "Let the coordinator check the submission without creating a job.")
@threads_option
@quiet_option
@pass_client
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
    """Submit a design to a coordinator; it gives the same RemyCC as 'design'.

    If the coordinator is restarting, the submission is retried and still creates only one job.

    With --sweep, one job is submitted for each combination of values; together they form a
    campaign. --watch then follows all of them and finally compares their RemyCCs on this machine,
    with --threads threads.
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
            _print_submitted(jobs, campaign, on_standard_error=True)
        if campaign:
            watch_campaign_to_its_end(
                client, campaign, threads=threads, quiet=quiet, as_json=as_json
            )
        else:
            watch_job_to_its_end(client, jobs[0].id, quiet=quiet, as_json=as_json, with_past=True)
    elif as_json:
        listed = [job_dict(job) for job in jobs]
        print_json({"campaign": campaign, "jobs": listed} if campaign else listed[0])
    elif validate_only:
        click.echo(f"the coordinator would accept {plural(len(jobs), 'job')}")
    else:
        _print_submitted(jobs, campaign)
        target = f"--campaign {campaign}" if campaign else jobs[0].id
        click.echo(f"to watch: remy-farm watch {target}", err=True)


def _upload_traces(client: DesignClient, requests: list[messages.SubmitJobRequest]) -> None:
    """Uploads each trace recording that the specifications name, once."""
    recordings = {
        recording.sha256: recording
        for request in requests
        for recording in link_traces(request.spec)
    }
    for recording in recordings.values():
        upload_trace(client.connection, recording.opportunities_us)


def _submit(client: DesignClient, requests: list[messages.SubmitJobRequest]) -> list[job_pb2.Job]:
    """Submits the requests in order.

    After an error, says how many jobs were submitted before it.
    """
    jobs: list[job_pb2.Job] = []
    for request in requests:
        try:
            jobs.append(client.submit(request))
        except ServiceError:
            if jobs and not request.validate_only:
                print_error(
                    f"{len(jobs)} of {plural(len(requests), 'job')} were submitted before this "
                    f"error, in campaign {request.campaign}"
                )
            raise
    return jobs


def _print_submitted(
    jobs: list[job_pb2.Job], campaign: str, *, on_standard_error: bool = False
) -> None:
    for job in jobs:
        click.echo(f"{views.job_label(job)} is submitted", err=on_standard_error)
    if campaign:
        click.echo(f"the campaign is {campaign}", err=on_standard_error)


@click.command(
    "fork",
    epilog=examples(
        "remy-farm fork my-design --epoch 3 --set objective.delta=10 --name other",
    ),
)
@job_argument
@option(
    "--epoch E",
    "Start from the table of this epoch; by default from the best table so far.",
    click.IntRange(0, 2**32 - 1),
)
@option("--name NAME", "Name of the new job.", default="", show_default="JOB's")
@option("--priority P", "Priority of the new job.", _PRIORITY, show_default="JOB's")
@settings_option("Change a setting, e.g. objective.delta=0.1; may be given several times.")
@pass_client
def fork_command(
    client: DesignClient,
    job: str,
    epoch: int | None,
    name: str,
    priority: int | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Start a new job from a table of JOB, e.g. for other networks or another objective."""
    fork = client.fork(
        messages.ForkJobRequest(
            job=job, epoch=epoch, name=name, settings=settings, priority=priority
        )
    )
    print_change(fork, as_json=as_json)
    if not as_json:
        click.echo(f"to watch: remy-farm watch {fork.id}", err=True)


@click.command(
    "extend",
    epilog=examples(
        "remy-farm extend my-design --steps 2000",
    ),
)
@job_argument
@option("--max-epochs N", "Stop after N epochs in total.", COUNT, name="epochs")
@option("--max-rules N", "Stop at N rules (mode paper).", COUNT, name="rules")
@option("--max-steps N", "Stop after N steps in total.", COUNT, name="steps")
@option(
    "--max-cpu-seconds S",
    "Stop after S seconds of CPU time in total.",
    POSITIVE,
    name="cpu_seconds",
)
@option(
    "--max-wall-seconds S",
    "Stop after S seconds of running time in total.",
    POSITIVE,
    name="wall_seconds",
)
@option("--epochs-without-gain N", "Stop after N epochs without a gain.", COUNT)
@option(
    "--steps N",
    "Total number of steps; replaces search.joint.steps.",
    COUNT,
    name="joint_steps",
)
@option("--priority P", "Jobs of higher priority run first.", _PRIORITY)
@pass_client
def extend_command(
    client: DesignClient,
    job: str,
    joint_steps: int | None,
    priority: int | None,
    as_json: bool,
    **budgets: float | None,
) -> None:
    """Increase a job's budgets, or change its priority.

    A job that has ended continues under the same id if a budget is larger. Options that are not
    given leave their budget unchanged.
    """
    # The parameters have the names of the Stop message's fields.
    given = {name: value for name, value in budgets.items() if value is not None}
    if not given and joint_steps is None and priority is None:
        raise click.UsageError("give at least one budget, e.g. --max-epochs 20, or --priority")
    current = client.get(job)
    stop = None
    if given:
        stop = spec_pb2.Stop()
        stop.CopyFrom(current.spec.stop)
        for name, value in given.items():
            setattr(stop, name, value)
    print_change(
        client.extend(current.id, stop=stop, joint_steps=joint_steps, priority=priority),
        as_json=as_json,
    )


def job_change_command(
    name: str, change: Callable[[DesignClient, str], job_pb2.Job], help_text: str
) -> click.Command:
    """Creates a command that sends one request about a job and prints the job's new state."""

    @click.command(name, help=help_text)
    @job_argument
    @pass_client
    def command(client: DesignClient, job: str, as_json: bool) -> None:
        print_change(change(client, job), as_json=as_json)

    return command


pause_command = job_change_command(
    "pause",
    DesignClient.pause,
    "Pause a job: it keeps its state and evaluates nothing until it is resumed.",
)


resume_command = job_change_command(
    "resume",
    DesignClient.resume,
    "Resume a paused job, or a failed job after its cause is fixed.",
)


cancel_command = job_change_command(
    "cancel",
    DesignClient.cancel,
    "Cancel a job. Its best RemyCC is kept; 'extend' continues the job.",
)


@click.command("delete")
@job_argument
@flag("--yes", "Delete without asking for confirmation.")
@pass_client
def delete_command(client: DesignClient, job: str, yes: bool, as_json: bool) -> None:
    """Delete a job that has ended or is paused, with its history and tables."""
    if not yes and (as_json or not sys.stdin.isatty()):
        raise click.UsageError("delete asks for confirmation on a terminal; add --yes to skip it")
    current = client.get(job)
    if not yes:
        label = f"{views.job_label(current)}, {views.position_text(current)}"
        click.confirm(f"Permanently delete {label}?", abort=True, err=True)
    client.delete(current.id)
    if as_json:
        print_json({"deleted": current.id, "name": current.name})
    else:
        click.echo(f"{views.job_label(current)} is deleted")


@click.command(
    "export-job",
    epilog=examples(
        "remy-farm export-job my-design -o job.remyjob",
    ),
)
@job_argument
@option("--out -o FILE", "File for the exported job.", FILE, required=True)
@pass_client
def export_job_command(client: DesignClient, job: str, out: str, as_json: bool) -> None:
    """Export a job's specification, history, tables and last checkpoint to one file.

    Another coordinator can continue the job after import-job.
    """
    content = export_job(client.connection, job)
    write_file(out, content)
    if as_json:
        print_json({"job": job, "file": out, "bytes": len(content)})
    else:
        click.echo(f"{out}: {job}, {len(content)} bytes")


@click.command(
    "import-job",
    epilog=examples(
        "remy-farm import-job job.remyjob",
    ),
)
@click.argument("archive", metavar="FILE", type=FILE)
@pass_client
def import_job_command(client: DesignClient, archive: str, as_json: bool) -> None:
    """Import a job from a file written by export-job. A job that had not ended is paused."""
    content = read_file(archive, limit=MAX_ARCHIVE_BYTES)
    print_change(import_job(client.connection, content, source=archive), as_json=as_json)
