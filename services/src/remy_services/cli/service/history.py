"""`remy-farm history`: how a job got to where it is, as a table and as a plot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from remy_farm.v1 import job_pb2
from remy_services.cli.options import FILE, json_option
from remy_services.cli.output import print_json
from remy_services.cli.service.connecting import connected
from remy_services.cli.service.history_files import FORMATS, to_csv
from remy_services.cli.service.history_rows import (
    EPOCH_COLUMNS,
    STEP_COLUMNS,
    epoch_rows,
    step_rows,
)
from remy_services.cli.service.job_options import job_argument
from remy_services.client import DesignClient, watch_job
from remy_services.files import write_file


@click.command("history")
@job_argument()
@click.option("--steps", "by_step", is_flag=True, help="A row for each step instead of each epoch.")
@click.option(
    "--out",
    "-o",
    type=FILE,
    metavar="FILE",
    help="A .csv, .json or .parquet file.  [default: CSV on standard output]",
)
@click.option(
    "--plot", type=FILE, metavar="FILE.png", help="Draw score and splits over steps and CPU time."
)
@json_option()
@connected
def command(
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
    from remy_services.report.history import collect_history
    from remy_services.report.score_plot import plot_score

    return plot_score(
        collect_history(event.progress for event in events if event.HasField("progress"))
    )
