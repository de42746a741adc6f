"""Options of the commands that talk to a coordinator, and its failures as exit codes."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from remy_cli.common import FILE, NOT_NEGATIVE, json_option, option
from remy_cli.coordinator import check_environment
from remy_cli.failures import ExitCode, Failure, complain
from remy_proto.v1 import design_service_pb2 as messages
from remy_rpc.settings import SettingsError
from remy_services.client import (
    PATIENCE_SECONDS,
    ConnectionSettings,
    Given,
    found_settings,
)
from remy_services.jobs import state_name

# gRPC takes long to load, and commands that may do without a coordinator have these options, too:
# what needs it is imported where it is used.

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: By the name of the ServiceError.
_CODES = {
    "BadRequest": ExitCode.BAD_INPUT,
    "Unreachable": ExitCode.UNREACHABLE,
    "NotAllowed": ExitCode.NOT_ALLOWED,
    "ServerFailed": ExitCode.INTERNAL,
}


def _setting(
    usage: str, text: str, kind: click.ParamType[Any] | None = None, **attributes: Any
) -> Callable[[_Command], _Command]:
    """A flag that a variable of its name may stand for."""
    flag = usage.split()[0].removeprefix("--")
    variable = f"REMY_FARM_{flag.replace('-', '_').upper()}"
    return option(usage, text, kind, envvar=variable, **attributes)


_OPTIONS = (
    _setting(
        "--coordinator HOST:PORT",
        "Where the coordinator is; 127.0.0.1:50051 unless the configuration file says more.",
    ),
    _setting(
        "--token-file FILE",
        "Holds the token that says who you are; REMY_FARM_TOKEN may hold the token itself.",
        FILE,
    ),
    _setting(
        "--tls-ca FILE",
        "Authorities that may have signed the coordinator's certificate (PEM).",
        FILE,
    ),
    _setting(
        "--tls-cert FILE", "Your certificate, where the coordinator asks for one (PEM).", FILE
    ),
    _setting("--tls-key FILE", "Its private key (PEM).", FILE),
    _setting(
        "--tls-server-name NAME",
        "The name in the coordinator's certificate, where it is reached by another.",
    ),
    _setting(
        "--insecure",
        "Plain text, also to another machine. Whoever is in between sees token and jobs.",
        is_flag=True,
        default=None,
    ),
)
_ON_A_FARM = option(
    "--coordinator HOST:PORT",
    "Simulate on the workers of this coordinator, as a job there, and not on this machine.",
)
_PATIENCE = _setting(
    "--patience SECONDS",
    "How long to go on trying while the coordinator is away.",
    NOT_NEGATIVE,
    name="patience_seconds",
    default=PATIENCE_SECONDS,
)


def connected(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command --json and the flags of the connection, and a DesignClient as its first
    argument."""

    @functools.wraps(function)
    def run(*, patience_seconds: float, **values: Any) -> Any:
        from remy_services.client import Connection, DesignClient

        with failures_of_the_service():
            settings = connection_settings(taken(values))
            with Connection(
                settings, patience_seconds=patience_seconds, on_trouble=complain
            ) as connection:
                return function(DesignClient(connection), **values)

    return json_option(with_connection_options(_PATIENCE(run)))


def with_connection_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the flags of the connection alone."""
    for add in reversed(_OPTIONS):
        function = add(function)
    return function


def with_farm_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a command that runs on this machine unless --coordinator is given; no variable
    and no file stands for that."""
    for add in reversed((_ON_A_FARM, *_OPTIONS[1:], _PATIENCE)):
        function = add(function)
    return function


def connection_settings(given: Given) -> ConnectionSettings:
    """What flags, environment and configuration file amount to. Raises SettingsError."""
    check_environment(os.environ)
    return found_settings(given, os.environ)


@contextmanager
def failures_of_the_service() -> Iterator[None]:
    """Has what goes wrong with a coordinator end the command with its sentence and exit code."""
    from remy_services.client import ServiceError

    try:
        yield
    except SettingsError as error:
        raise Failure(str(error), ExitCode.BAD_INPUT) from error
    except ServiceError as error:
        raise Failure(str(error), _CODES.get(type(error).__name__, ExitCode.REFUSED)) from error


def taken(values: dict[str, Any]) -> Given:
    """What the flags of the connection say; they are no longer among `values` then."""
    names = [name for name in Given.__struct_fields__ if name in values]
    return Given(**{name: values.pop(name) for name in names})


# Whoever presses the tab key waits for this.
_COMPLETION_SECONDS = 2.0
_MOST_COMPLETIONS = 50


class JobName(click.ParamType[str]):
    """A job's id, or its name; a shell completes names by asking the coordinator."""

    name = "job"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from remy_services.client import Connection, DesignClient, ServiceError

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


#: JOB: an id, a name, or the beginning of an id, where that is unambiguous.
job_argument = click.argument("job", metavar="JOB", type=JobName())
