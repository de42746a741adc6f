"""Connection options of commands that call a coordinator, and exit codes of its errors."""

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
from remy_cli.failures import ExitCode, Failure, print_error
from remy_proto.v1 import design_service_pb2 as messages
from remy_rpc.settings import SettingsError
from remy_services.client import (
    PATIENCE_SECONDS,
    ConnectionSettings,
    SettingsSource,
    load_settings,
)
from remy_services.jobs import state_name

# gRPC is slow to import, and some commands with these options can run without a coordinator.
# Modules that need gRPC are therefore imported inside functions.

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: Maps the class name of a ServiceError to an exit code; REFUSED is the default.
_EXIT_CODES = {
    "BadRequest": ExitCode.BAD_INPUT,
    "Unreachable": ExitCode.UNREACHABLE,
    "NotAllowed": ExitCode.NOT_ALLOWED,
    "ServerFailed": ExitCode.INTERNAL,
}


def _connection_option(
    usage: str, text: str, kind: click.ParamType[Any] | None = None, **attributes: Any
) -> Callable[[_Command], _Command]:
    """Adds an option that can also be set by the environment variable REMY_FARM_<FLAG>."""
    flag = usage.split()[0].removeprefix("--")
    variable = f"REMY_FARM_{flag.replace('-', '_').upper()}"
    return option(usage, text, kind, envvar=variable, **attributes)


_OPTIONS = (
    _connection_option(
        "--coordinator HOST:PORT",
        "Address of the coordinator; by default the configuration file's, else 127.0.0.1:50051.",
    ),
    _connection_option(
        "--token-file FILE",
        "File with your access token; REMY_FARM_TOKEN may hold the token itself.",
        FILE,
    ),
    _connection_option(
        "--tls-ca FILE",
        "CA certificates that verify the coordinator's certificate (PEM).",
        FILE,
    ),
    _connection_option(
        "--tls-cert FILE", "Your client certificate, if the coordinator requires one (PEM).", FILE
    ),
    _connection_option("--tls-key FILE", "Private key of --tls-cert (PEM).", FILE),
    _connection_option(
        "--tls-server-name NAME",
        "Name in the coordinator's certificate, if it differs from the host in the address.",
    ),
    _connection_option(
        "--insecure",
        "Connect without TLS even to another machine, which exposes token and jobs on the network.",
        is_flag=True,
        default=None,
    ),
)
_FARM_COORDINATOR = option(
    "--coordinator HOST:PORT",
    "Simulate on this coordinator's workers, as a job, instead of on this machine.",
)
_PATIENCE = _connection_option(
    "--patience SECONDS",
    "Retry this long, in seconds, while the coordinator is unreachable.",
    NOT_NEGATIVE,
    name="patience_seconds",
    default=PATIENCE_SECONDS,
)


def pass_client(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --json and the connection options, and passes a DesignClient as first argument."""

    @functools.wraps(function)
    def run(*, patience_seconds: float, **values: Any) -> Any:
        from remy_services.client import Connection, DesignClient

        with service_errors_exit():
            settings = connection_settings(pop_connection_options(values))
            with Connection(
                settings, patience_seconds=patience_seconds, on_trouble=print_error
            ) as connection:
                return function(DesignClient(connection), **values)

    return json_option(with_connection_options(_PATIENCE(run)))


def with_connection_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the connection options."""
    for add in reversed(_OPTIONS):
        function = add(function)
    return function


def with_farm_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the connection options to a command that uses a farm only if --coordinator is given.

    Neither an environment variable nor the configuration file sets --coordinator here.
    """
    for add in reversed((_FARM_COORDINATOR, *_OPTIONS[1:], _PATIENCE)):
        function = add(function)
    return function


def connection_settings(given: SettingsSource) -> ConnectionSettings:
    """Combines flags, environment and configuration file. Raises SettingsError."""
    check_environment(os.environ)
    return load_settings(given, os.environ)


@contextmanager
def service_errors_exit() -> Iterator[None]:
    """Turns errors of the settings or the coordinator into a Failure with its exit code."""
    from remy_services.client import ServiceError

    try:
        yield
    except SettingsError as error:
        raise Failure(str(error), ExitCode.BAD_INPUT) from error
    except ServiceError as error:
        raise Failure(
            str(error), _EXIT_CODES.get(type(error).__name__, ExitCode.REFUSED)
        ) from error


def pop_connection_options(values: dict[str, Any]) -> SettingsSource:
    """Removes the connection options from `values` and returns them."""
    names = [name for name in SettingsSource.__struct_fields__ if name in values]
    return SettingsSource(**{name: values.pop(name) for name in names})


# The user waits for this after pressing Tab.
_COMPLETION_TIMEOUT_SECONDS = 2.0
_MAX_COMPLETIONS = 50


class JobName(click.ParamType[str]):
    """A job's id or name. Shell completion requests the names from the coordinator."""

    name = "job"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from remy_services.client import Connection, DesignClient, ServiceError

        request = messages.ListJobsRequest(name_contains=incomplete, page_size=_MAX_COMPLETIONS)
        try:
            with Connection(
                connection_settings(pop_connection_options(dict(ctx.params))),
                deadline_seconds=_COMPLETION_TIMEOUT_SECONDS,
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


#: JOB: a job's id, its name, or an unambiguous prefix of its id.
job_argument = click.argument("job", metavar="JOB", type=JobName())
