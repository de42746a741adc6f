"""`remy-farm import-job`: a job that was exported, for another coordinator."""

from __future__ import annotations

import click

from remy_services.cli.options import FILE, json_option
from remy_services.cli.service.connecting import connected
from remy_services.cli.service.job_output import print_change
from remy_services.client import MOST_ARCHIVE_BYTES, DesignClient, import_job
from remy_services.files import read_file


@click.command("import-job")
@click.argument("archive", metavar="FILE", type=FILE)
@json_option()
@connected
def command(client: DesignClient, archive: str, as_json: bool) -> None:
    """Store a job that export-job wrote; it is paused if it had not ended."""
    content = read_file(archive, limit=MOST_ARCHIVE_BYTES)
    print_change(import_job(client.connection, content, source=archive), as_json=as_json)
