"""Commands that show jobs: list, status, compare, fetch and history."""

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
    option,
    print_json,
    print_table,
    switch,
)
from remy_cli.connecting import JobName, connected, job_argument
from remy_cli.views import job_table, print_job
from remy_farm.analysis import FORMATS, collect_history, several, to_csv
from remy_farm.files import write_file
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_services.client import DesignClient, watch_job
from remy_services.jobs import (
    EPOCH_COLUMNS,
    STEP_COLUMNS,
    epoch_rows,
    job_tree,
    message_tree,
    state_name,
    step_rows,
)

_STATES = {
    state_name(state): state
    for state in cast("list[job_pb2.JobState]", job_pb2.JobState.values())
    if state != job_pb2.JOB_STATE_UNSPECIFIED
}


@click.command("list")
@option(
    "--state",
    "Only jobs in this state; may be repeated.",
    click.Choice(list(_STATES), case_sensitive=False),
    name="states",
    multiple=True,
)
@option("--owner NAME", "Only jobs of this owner.", default="")
@option("--campaign NAME", "Only jobs of this sweep.", default="")
@option("--name TEXT", "Only jobs whose name contains this.", default="")
@option("--limit N", "At most so many, the newest.", POSITIVE_INT, default=100)
@switch("--all", "All of them.", name="is_all")
@connected
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


@click.command("status")
@job_argument
@connected
def status_command(client: DesignClient, job: str, as_json: bool) -> None:
    """Show how far a job is, and with --json its specification, too.

    JOB is a job's id or its name, or how its id begins, where that is unambiguous.
    """
    print_job(client.get(job), as_json=as_json)


@click.command("compare")
@click.argument("jobs", metavar="JOB JOB ...", nargs=-1, required=True, type=JobName())
@connected
def compare_command(client: DesignClient, jobs: tuple[str, ...], as_json: bool) -> None:
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
    table = PlainTable("setting", *heads, left=1)
    for difference in response.differences:
        table.add_row(difference.path, *(value or "-" for value in difference.values))
    print_table(table)


_FORMATS = {".json": messages.REMY_CC_FORMAT_JSON, ".dna": messages.REMY_CC_FORMAT_DNA}


@click.command("fetch")
@job_argument
@option(
    "--epoch E", "The table of this epoch instead of the best so far.", click.IntRange(0, 2**32 - 1)
)
@option(
    "--table NAME", "Which of several tables that are designed together.", show_default="the first"
)
@option("--out -o FILE", "A .json file, or of absolute rules a .dna file.", FILE, required=True)
@connected
def fetch_command(
    client: DesignClient, job: str, epoch: int | None, table: str | None, out: str, as_json: bool
) -> None:
    """Write a job's RemyCC to a file, complete or not at all."""
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
        click.echo(f"{out}: {several(response.rules, 'rule')}")


@click.command("logs")
@job_argument
@connected
def logs_command(client: DesignClient, job: str, as_json: bool) -> None:
    """Show the last lines that a job's workers have reported of their logs, oldest first.

    They are those of workers that work for the job alone, and of those that work for any job. The
    coordinator keeps the last hundred of each worker, for as long as it runs.
    """
    lines = client.worker_lines(job)
    if as_json:
        print_json({"job": job, "lines": [message_tree(each) for each in lines]})
        return
    for each in lines:
        time = datetime.fromtimestamp(each.unix_seconds, UTC).isoformat("T", "milliseconds")
        click.echo(f"{time} {each.host or each.worker_id} {each.level}: {each.text}")


@click.command("history")
@job_argument
@switch("--steps", "A row for each step instead of each epoch.", name="by_step")
@option(
    "--out -o FILE", "A .csv, .json or .parquet file.", FILE, show_default="CSV on standard output"
)
@option("--plot FILE.png", "Draw score and splits over steps and CPU time.", FILE)
@connected
def history_command(
    client: DesignClient, job: str, by_step: bool, out: str | None, plot: str | None, as_json: bool
) -> None:
    """Write a job's progress history: epochs or steps with score, error, rules and CPU time.

    It is in the coordinator's store for as long as the job is, and complete whatever happened to
    the job in between. Files are complete or not written.
    """
    _check_names(out, plot)
    found = client.get(job)
    past = list(_past(client, found)) if by_step or plot is not None else []
    columns = STEP_COLUMNS if by_step else EPOCH_COLUMNS
    rows = step_rows(past) if by_step else epoch_rows(client.epochs(found.id))
    if out is not None:
        write_file(out, FORMATS[Path(out).suffix.lower()](columns, rows))
    if plot is not None:
        write_file(plot, _drawn(past))
    if as_json:
        print_json({"job": found.id, "name": found.name, "rows": rows})
    elif out is None and plot is None:
        click.echo(to_csv(columns, rows).decode(), nl=False)


def _check_names(out: str | None, plot: str | None) -> None:
    if out is not None and Path(out).suffix.lower() not in FORMATS:
        raise click.UsageError(f"{out} must be a name that ends in {', '.join(FORMATS)}")
    if plot is not None and Path(plot).suffix.lower() != ".png":
        raise click.UsageError(f"{plot} must be a name that ends in .png")


def _past(client: DesignClient, job: job_pb2.Job) -> Iterator[job_pb2.JobEvent]:
    """The job's history up to now; what happens from now on is not waited for."""
    if job.revision == 0:
        return
    for update in watch_job(client.connection, job.id):
        if isinstance(update, job_pb2.JobEvent):
            yield update
            if update.revision >= job.revision:
                return


def _drawn(events: list[job_pb2.JobEvent]) -> bytes:
    # Loads what draws, which takes a moment.
    from remy_farm.analysis import plot_score

    return plot_score(
        collect_history(event.progress for event in events if event.HasField("progress"))
    )
