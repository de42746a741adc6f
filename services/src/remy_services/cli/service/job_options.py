"""Arguments and flags that commands on jobs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from remy_farm.v1 import design_service_pb2 as messages
from remy_services.cli.service.connecting import connection_settings, taken
from remy_services.cli.service.job_words import state_name
from remy_services.client import Connection, DesignClient, ServiceError, SettingsError

_Command = TypeVar("_Command", bound=Callable[..., Any])

# Whoever presses the tab key waits for this.
_COMPLETION_SECONDS = 2.0
_MOST_COMPLETIONS = 50


class JobName(click.ParamType[str]):
    """A job's id, or its name; a shell completes names by asking the coordinator."""

    name = "job"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        request = messages.ListJobsRequest(name_contains=incomplete, page_size=_MOST_COMPLETIONS)
        try:
            with Connection(
                connection_settings(taken(dict(ctx.params))),
                deadline_seconds=_COMPLETION_SECONDS,
                patience_seconds=0,
            ) as connection:
                jobs = DesignClient(connection).list(request).jobs
        except (ServiceError, SettingsError):
            return []
        return [
            CompletionItem(job.name, help=state_name(job.state))
            for job in jobs
            if job.name.startswith(incomplete)
        ]


def job_argument() -> Callable[[_Command], _Command]:
    """JOB: an id, or a name where that is unambiguous."""
    return click.argument("job", metavar="JOB", type=JobName())


def quiet_option() -> Callable[[_Command], _Command]:
    """--quiet."""
    return click.option("--quiet", is_flag=True, help="Show no progress.")
