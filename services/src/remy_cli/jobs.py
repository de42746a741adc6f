"""Commands that show jobs: list, status, compare, fetch, logs and history."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import click

from remy_cli.common import (
    FILE,
    POSITIVE_INT,
    PlainTable,
    examples,
    flag,
    option,
    print_json,
    print_table,
)
from remy_cli.connecting import JobName, job_argument, pass_client
from remy_cli.views import job_table, print_job
from remy_farm.analysis import FORMATS, collect_history, plural, to_csv
from remy_farm.files import write_file
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_services.client import DesignClient, watch_job
from remy_services.jobs import (
    EPOCH_COLUMNS,
    STEP_COLUMNS,
    epoch_rows,
    job_dict,
    message_dict,
    state_name,
    step_rows,
)

_STATES = {
    state_name(state): state
    for state in cast("list[job_pb2.JobState]", job_pb2.JobState.values())
    if state != job_pb2.JOB_STATE_UNSPECIFIED
}


@click.command(
    "list",
    epilog=examples(
        "remy-farm list --state running --state paused",
        "remy-farm list --campaign my-sweep --all --json",
    ),
)
@option(
    "--state",
    "Only jobs in this state; may be given several times.",
    click.Choice(list(_STATES), case_sensitive=False),
    name="states",
    multiple=True,
)
@option("--owner NAME", "Only jobs of this owner.", default="")
@option("--campaign NAME", "Only jobs of this campaign.", default="")
@option("--name TEXT", "Only jobs whose name contains this text.", default="")
@option("--limit N", "List at most N jobs, the newest.", POSITIVE_INT, default=100)
@flag("--all", "List all jobs.", name="is_all")
@pass_client
def list_command(
    client: DesignClient,
    states: tuple[str, ...],
    owner: str,
    campaign: str,
    name: str,
    limit: int,
    is_all: bool,
    as_json: bool,
) -> None:
    """List jobs, newest first."""
    request = messages.ListJobsRequest(
        states=[_STATES[each.lower()] for each in states],
        owner=owner,
        campaign=campaign,
        name_contains=name,
    )
    listed = client.list_all(request)
    jobs = list(listed if is_all else itertools.islice(listed, limit))
    has_more = not is_all and next(listed, None) is not None
    if as_json:
        print_json({"jobs": [job_dict(job) for job in jobs], "has_more": has_more})
        return
    print_table(job_table(jobs))
    if has_more:
        click.echo(f"only the newest {limit} are listed; --all lists all", err=True)


@click.command("status")
@job_argument
@pass_client
def status_command(client: DesignClient, job: str, as_json: bool) -> None:
    """Show a job's progress; with --json also its specification.

    JOB is a job's id, its name, or an unambiguous prefix of its id.
    """
    print_job(client.get(job), as_json=as_json)


@click.command(
    "compare",
    epilog=examples(
        "remy-farm compare my-design other-design",
    ),
)
@click.argument("jobs", metavar="JOB JOB ...", nargs=-1, required=True, type=JobName())
@pass_client
def compare_command(client: DesignClient, jobs: tuple[str, ...], as_json: bool) -> None:
    """Show the progress of jobs, and the settings in which they differ."""
    if len(jobs) < 2:
        raise click.UsageError("give at least two jobs")
    response = client.compare(jobs)
    if as_json:
        print_json(
            {
                "jobs": [job_dict(job) for job in response.jobs],
                "differences": [message_dict(each) for each in response.differences],
            }
        )
        return
    print_table(job_table(response.jobs))
    click.echo()
    if not response.differences:
        click.echo("The specifications are equal.")
        return
    names = [job.name for job in response.jobs]
    columns = [job.id for job in response.jobs] if len(set(names)) < len(names) else names
    table = PlainTable("setting", *columns, left=1)
    for difference in response.differences:
        table.add_row(difference.path, *(value or "-" for value in difference.values))
    print_table(table)


_FORMATS = {".json": messages.REMY_CC_FORMAT_JSON, ".dna": messages.REMY_CC_FORMAT_DNA}


@click.command(
    "fetch",
    epilog=examples(
        "remy-farm fetch my-design -o remycc.json",
    ),
)
@job_argument
@option(
    "--epoch E",
    "Fetch the table of this epoch; by default the best table so far.",
    click.IntRange(0, 2**32 - 1),
)
@option(
    "--table NAME", "Name of the table, if several are designed together.", show_default="the first"
)
@option(
    "--out -o FILE", "Output file: .json, or .dna if the rules are absolute.", FILE, required=True
)
@pass_client
def fetch_command(
    client: DesignClient, job: str, epoch: int | None, table: str | None, out: str, as_json: bool
) -> None:
    """Save a job's RemyCC to a file, which is written atomically."""
    file_format = _FORMATS.get(Path(out).suffix.lower())
    if file_format is None:
        raise click.UsageError(f"{out} must be a name that ends in .json or .dna")
    response = client.remycc(job, epoch=epoch, file_format=file_format, table=table)
    write_file(out, response.content)
    if as_json:
        print_json(
            {
                "job": job,
                "epoch": epoch,
                "file": out,
                "rules": response.rules,
                "sha256": response.sha256.hex(),
            }
        )
    else:
        click.echo(f"{out}: {plural(response.rules, 'rule')}")


@click.command("logs")
@job_argument
@pass_client
def logs_command(client: DesignClient, job: str, as_json: bool) -> None:
    """Show the latest log lines of a job's workers, oldest first.

    Includes workers dedicated to the job and workers shared by all jobs. The coordinator keeps the
    last 100 lines of each worker in memory.
    """
    lines = client.worker_lines(job)
    if as_json:
        print_json({"job": job, "lines": [message_dict(each) for each in lines]})
        return
    for each in lines:
        time = datetime.fromtimestamp(each.unix_seconds, UTC).isoformat("T", "milliseconds")
        click.echo(f"{time} {each.host or each.worker_id} {each.level}: {each.text}")


@click.command(
    "history",
    epilog=examples(
        "remy-farm history my-design --plot history.png",
    ),
)
@job_argument
@flag("--steps", "Write a row per step instead of per epoch.", name="by_step")
@option(
    "--out -o FILE",
    "Output file: .csv, .json or .parquet.",
    FILE,
    show_default="CSV on standard output",
)
@option("--plot FILE.png", "Plot score and splits over steps and CPU time.", FILE)
@pass_client
def history_command(
    client: DesignClient, job: str, by_step: bool, out: str | None, plot: str | None, as_json: bool
) -> None:
    """Save a job's history: epochs or steps with score, standard error, rules and CPU time.

    The history is complete, across restarts and pauses, and is kept as long as the job. Files are
    written atomically.
    """
    _check_names(out, plot)
    current = client.get(job)
    past = list(_history_so_far(client, current)) if by_step or plot is not None else []
    columns = STEP_COLUMNS if by_step else EPOCH_COLUMNS
    rows = step_rows(past) if by_step else epoch_rows(client.epochs(current.id))
    if out is not None:
        write_file(out, FORMATS[Path(out).suffix.lower()](columns, rows))
    if plot is not None:
        write_file(plot, _plot_history(past))
    if as_json:
        print_json({"job": current.id, "name": current.name, "rows": rows})
    elif out is None and plot is None:
        click.echo(to_csv(columns, rows).decode(), nl=False)


def _check_names(out: str | None, plot: str | None) -> None:
    if out is not None and Path(out).suffix.lower() not in FORMATS:
        raise click.UsageError(f"{out} must be a name that ends in {', '.join(FORMATS)}")
    if plot is not None and Path(plot).suffix.lower() != ".png":
        raise click.UsageError(f"{plot} must be a name that ends in .png")


def _history_so_far(client: DesignClient, job: job_pb2.Job) -> Iterator[job_pb2.JobEvent]:
    """Yields the job's history up to its current revision."""
    if job.revision == 0:
        return
    for update in watch_job(client.connection, job.id):
        if isinstance(update, job_pb2.JobEvent):
            yield update
            if update.revision >= job.revision:
                return


def _plot_history(events: list[job_pb2.JobEvent]) -> bytes:
    # Imported here because the plotting library is slow to import.
    from remy_farm.analysis import plot_score

    return plot_score(
        collect_history(event.progress for event in events if event.HasField("progress"))
    )
