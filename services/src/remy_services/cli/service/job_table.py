"""Jobs as the rows of a table."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from remy_farm.v1 import job_pb2
from remy_services.cli.output import plain_table
from remy_services.cli.service import job_words
from remy_services.report.wording import duration

_COLUMNS = ("name", "id", "state", "owner", "epoch", "rules", "step", "done", "score", "CPU time")


def job_table(jobs: Iterable[job_pb2.Job]) -> Table:
    """One row a job, in the order given."""
    table = plain_table(*_COLUMNS, "submitted", left=4)
    for job in jobs:
        now = job.progress
        table.add_row(
            job.name,
            job.id,
            job_words.state_name(job.state),
            job.owner,
            str(now.epoch),
            str(now.rules),
            str(now.step),
            job_words.share_done(job),
            job_words.score(job, digits_only=True),
            duration(now.cpu_seconds),
            job_words.moment(job.create_time) if job.HasField("create_time") else "-",
        )
    return table
