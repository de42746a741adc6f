"""`remy-farm export-job`: a job with everything stored of it, as one file."""

from __future__ import annotations

import click

from remy_services.cli.options import FILE, json_option
from remy_services.cli.output import print_json
from remy_services.cli.service.connecting import connected
from remy_services.cli.service.job_options import job_argument
from remy_services.client import DesignClient, export_job
from remy_services.files import write_file


@click.command("export-job")
@job_argument()
@click.option("--out", "-o", required=True, type=FILE, metavar="FILE", help="The archive.")
@json_option()
@connected
def command(client: DesignClient, job: str, out: str, as_json: bool) -> None:
    """Write a job's specification, history, tables and last checkpoint to one file.

    import-job has another coordinator go on with it.
    """
    content = export_job(client.connection, job)
    write_file(out, content)
    if as_json:
        print_json({"job": job, "file": out, "bytes": len(content)})
    else:
        click.echo(f"{out}: {job}, {len(content)} bytes")
