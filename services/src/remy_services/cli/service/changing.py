"""Commands that ask for a change of one job's state."""

from __future__ import annotations

from collections.abc import Callable

import click

from remy_farm.v1 import job_pb2
from remy_services.cli.options import json_option
from remy_services.cli.service.connecting import connected
from remy_services.cli.service.job_options import job_argument
from remy_services.cli.service.job_output import print_change
from remy_services.client import DesignClient


def changing_command(
    name: str, change: Callable[[DesignClient, str], job_pb2.Job], help_text: str
) -> click.Command:
    """A command that makes one request about one job and shows the job's new state."""

    @click.command(name, help=help_text)
    @job_argument()
    @json_option()
    @connected
    def command(client: DesignClient, job: str, as_json: bool) -> None:
        print_change(change(client, job), as_json=as_json)

    return command
