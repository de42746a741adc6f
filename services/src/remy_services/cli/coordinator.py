"""`remy-farm coordinator`: the server that a team's designs share, and its settings."""

from __future__ import annotations

import asyncio
import difflib
import os
import re
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

import click

from remy_services.cli.common import FiniteRange
from remy_simulator.cpus import allowed_cpus

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

#: What the environment's variables begin with; --listen is REMY_FARM_COORDINATOR_LISTEN.
VARIABLE_PREFIX = "REMY_FARM_COORDINATOR"

FILE = click.Path(dir_okay=False, path_type=Path)


def setting(*names: str, **attributes: Any) -> Decorator:
    """click.option, with the variable and the default in the help text."""
    return click.option(*names, **{"show_envvar": True, "show_default": True, **attributes})


_MOST_CONFIG_BYTES = 1 << 20


def _read_config(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Makes a file's settings the defaults of this command."""
    if path is None:
        return
    from remy_services.files import read_file
    from remy_services.specification.reading import read_yaml

    try:
        text = read_file(path, limit=_MOST_CONFIG_BYTES).decode()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{path} is not UTF-8 text") from error
    tree = read_yaml(text, str(path))
    known = {
        option.name: next(name.lstrip("-") for name in option.opts)
        for option in context.command.params
        if isinstance(option, click.Option) and option.name not in ("config", "help")
    }
    by_key = {key: name for name, key in known.items()}
    if not isinstance(tree, dict):
        raise click.UsageError(
            f"{path} must be a mapping of settings, as in 'listen: 0.0.0.0:7390'"
        )
    for key, value in tree.items():
        if key not in by_key:
            raise click.UsageError(
                f"{path}: {key[:60]!r} is no setting; there are {', '.join(sorted(by_key))}"
            )
        if isinstance(value, list | dict) or value is None:
            raise click.UsageError(f"{path}: {key} must be one value")
    context.default_map = {
        **(context.default_map or {}),
        **{by_key[key]: _as_flag_value(value) for key, value in tree.items()},
    }


def _as_flag_value(value: Any) -> Any:
    return value if isinstance(value, bool) else str(value)


CONFIG = setting(
    "--config",
    type=FILE,
    is_eager=True,
    expose_value=False,
    callback=_read_config,
    metavar="FILE",
    help="YAML file with settings by the names of the flags, without dashes in front; flags "
    "and the environment go before it.",
)


# Settings in the environment.


# Of other commands and programs, which a coordinator's environment may hold too.
_OTHER_VARIABLES = frozenset(
    f"REMY_FARM_{name}"
    for name in (
        *("CLUSTER_TOOL", "CONFIG", "COORDINATOR", "INSECURE", "PATIENCE", "TOKEN", "TOKEN_FILE"),
        *("TLS_CA", "TLS_CERT", "TLS_KEY", "TLS_SERVER_NAME"),
        *("REDIS_PASSWORD", "REDIS_PASSWORD_FILE"),
    )
)
_OTHER_PREFIXES = ("REMY_FARM_WORKER_", "REMY_FARM_E2E_")
# What Kubernetes tells pods of the services beside them.
_SERVICE_LINK = re.compile(r"_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT(_[0-9]+_(TCP|UDP|SCTP).*)?$")


def check_environment(context: click.Context, environment: Mapping[str, str]) -> None:
    """Raises UsageError for a variable that looks like one of ours and is none: a setting that
    would silently not be in force."""
    known = set(_OTHER_VARIABLES)
    for option in context.command.params:
        known.add(f"{VARIABLE_PREFIX}_{option.name}".upper())
        given = option.envvar or ()
        known.update([given] if isinstance(given, str) else given)
    for name in sorted(environment):
        if (
            name.startswith("REMY_FARM_")
            and name not in known
            and not name.startswith(_OTHER_PREFIXES)
            and not _SERVICE_LINK.search(name)
        ):
            closest = difflib.get_close_matches(name, known, n=1)
            meant = f"; is {closest[0]} meant?" if closest else ""
            raise click.UsageError(f"the environment has {name}, which is no setting{meant}")


EVALUATION_OPTIONS: tuple[Decorator, ...] = (
    setting(
        "--evaluator",
        type=click.Choice(["local", "workers", "ray"]),
        default="local",
        help="Who simulates: this process, workers that call, or a Ray cluster.",
    ),
    setting(
        "--threads",
        type=click.IntRange(1, 1024),
        default=allowed_cpus,
        show_default="the CPUs allowed",
        metavar="N",
        help="Threads of the evaluator 'local'.",
    ),
    setting(
        "--ray-address",
        default="auto",
        envvar=[f"{VARIABLE_PREFIX}_RAY_ADDRESS", "REMY_FARM_RAY_ADDRESS"],
        metavar="ADDRESS",
        help="Of the evaluator 'ray': HOST:PORT of the head where this machine is a node of the "
        "cluster, ray://HOST:PORT where it is not, auto for the cluster that this machine is in.",
    ),
    setting(
        "--ray-threads-per-actor",
        type=click.IntRange(1, 1024),
        default=1,
        metavar="N",
        help="CPUs that an actor takes on its node.",
    ),
    setting(
        "--ray-actors",
        type=click.IntRange(min=1),
        metavar="N",
        show_default="as many as fit on the nodes",
        help="Actors to ask Ray for, which may have its autoscaler add nodes.",
    ),
    setting(
        "--ray-resource",
        default="",
        metavar="NAME",
        show_default="any node",
        help="Only use nodes of the Ray cluster that have this resource.",
    ),
    setting(
        "--ray-listen",
        default="0.0.0.0:0",
        metavar="HOST:PORT",
        help="Where actors of the evaluator 'ray' call; port 0 is any that is free.",
    ),
    setting(
        "--reproductions",
        type=click.Path(file_okay=False, exists=True, path_type=Path),
        metavar="DIR",
        help="Write there the evaluation tasks that were given up because they kept ending their "
        "workers.",
    ),
    setting(
        "--kubernetes-workers",
        type=FILE,
        metavar="FILE",
        help="Have Kubernetes run workers for each job, as this YAML file says; the Helm chart "
        "writes it.",
    ),
)


STORE_OPTIONS: tuple[Decorator, ...] = (
    setting(
        "--store",
        default="sqlite:remy-farm.db",
        metavar="URL",
        help="Where jobs are kept: sqlite:///PATH, redis://HOST:PORT/DATABASE and others.",
    ),
    setting(
        "--accept-data-loss",
        is_flag=True,
        help="Use a store that may lose what it has acknowledged.",
    ),
    setting(
        "--mirror",
        metavar="URL",
        help="Keep an archive of every job there, too, renewed at each epoch: file:///DIRECTORY or "
        "s3://BUCKET/FOLDER.",
    ),
    setting(
        "--name",
        metavar="NAME",
        show_default="the host's name",
        help="Name of this coordinator, for people.",
    ),
    setting(
        "--checkpoint-seconds",
        type=FiniteRange(min=0),
        default=1.0,
        metavar="S",
        help="Commit a job at most once in S seconds; that much work is lost with the process.",
    ),
    setting(
        "--maximum-running-jobs",
        type=click.IntRange(min=1),
        default=100,
        metavar="N",
        help="Jobs that run at once; others wait, by priority.",
    ),
    setting(
        "--maximum-running-jobs-per-user",
        type=click.IntRange(min=1),
        default=100,
        metavar="N",
        help="The same for the jobs of one owner.",
    ),
    setting(
        "--maximum-packets-per-job",
        type=click.IntRange(min=1),
        metavar="N",
        show_default="any number",
        help="Packets that one job may simulate.",
    ),
    setting(
        "--maximum-spec-bytes",
        type=click.IntRange(min=1),
        default=256 << 10,
        metavar="N",
        help="Size of a specification.",
    ),
    setting(
        "--price-per-cpu-hour",
        type=FiniteRange(min=0),
        metavar="PRICE",
        help="For the estimated cost of jobs.",
    ),
)


SERVING_OPTIONS: tuple[Decorator, ...] = (
    setting(
        "--listen",
        default="127.0.0.1:50051",
        metavar="HOST:PORT",
        help="Where to serve; port 0 is any that is free. Other hosts than this one are served "
        "with TLS and tokens only.",
    ),
    setting(
        "--health-listen",
        metavar="HOST:PORT",
        help="Also serve health, and nothing else, there, in plain text.",
    ),
    setting(
        "--tokens-file",
        type=FILE,
        metavar="FILE",
        help="YAML file with those who may call, and what; read again when it changes.",
    ),
    setting("--tls-cert", type=FILE, metavar="FILE", help="Certificate of the server (PEM)."),
    setting("--tls-key", type=FILE, metavar="FILE", help="Its private key (PEM)."),
    setting(
        "--tls-client-ca",
        type=FILE,
        metavar="FILE",
        help="Only let in clients whose certificate one of these authorities signed (PEM).",
    ),
    setting(
        "--insecure",
        is_flag=True,
        help="Serve other hosts although TLS or tokens are missing.",
    ),
    setting(
        "--reflection/--no-reflection",
        default=True,
        help="Tell callers what services there are (gRPC reflection).",
    ),
    setting(
        "--maximum-message-bytes",
        type=click.IntRange(min=1 << 16),
        default=16 << 20,
        metavar="N",
        help="Size of any message.",
    ),
    setting(
        "--maximum-open-streams",
        type=click.IntRange(min=1),
        default=1000,
        metavar="N",
        help="Watches and transfers of jobs at once.",
    ),
    setting(
        "--grace-seconds",
        type=FiniteRange(min=0),
        default=20.0,
        metavar="S",
        help="When told to end (SIGTERM, Ctrl-C), do so within S seconds.",
    ),
    setting(
        "--ready-file",
        type=FILE,
        metavar="FILE",
        help="Write the address there when the coordinator serves.",
    ),
)


TELEMETRY_OPTIONS: tuple[Decorator, ...] = (
    setting(
        "--metrics-listen",
        metavar="HOST:PORT",
        help="Serve metrics for Prometheus there, in plain text to whoever asks.",
    ),
    setting(
        "--profile-dir",
        type=click.Path(file_okay=False, exists=True, path_type=Path),
        default=Path(gettempdir()),
        metavar="DIR",
        help="Where the signal USR2 has a profile written.",
    ),
    setting(
        "--profile-seconds",
        type=FiniteRange(min=0, min_open=True, max=3600),
        default=30.0,
        metavar="S",
        help="How long a profile is; the coordinator is about half as fast meanwhile.",
    ),
    setting(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        default="info",
        help="Least level of what is logged, on standard error.",
    ),
)


def coordinator_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """All of them."""
    options = (CONFIG, *SERVING_OPTIONS, *STORE_OPTIONS, *EVALUATION_OPTIONS, *TELEMETRY_OPTIONS)
    for option in reversed(options):
        command = option(command)
    return command


if TYPE_CHECKING:
    from remy_rpc.settings import Address
    from remy_services.coordinator.server import ServerSettings
    from remy_services.coordinator.tls import ServerTls


@click.command(
    "coordinator",
    context_settings={"auto_envvar_prefix": VARIABLE_PREFIX},
    epilog="Every flag may be set by the variable that stands behind it, or in the file that "
    "--config names. docs/operations.md says more.",
)
@coordinator_options
@click.pass_context
def command(
    context: click.Context,
    /,
    log_level: str,
    metrics_listen: str | None,
    profile_dir: Path,
    profile_seconds: float,
    **options: Any,
) -> None:
    """Serve design jobs to a team: store them, have them evaluated, and let them be watched.

    SIGTERM or Ctrl-C leaves a checkpoint of every job; the next coordinator on the same store goes
    on from there, also after a crash.
    """
    from remy_rpc.logs import set_up_logs
    from remy_rpc.settings import SettingsError
    from remy_services.coordinator.instrumentation import ExportSettings, exported
    from remy_services.coordinator.server import serve
    from remy_services.stores import StoreError

    check_environment(context, os.environ)
    set_up_logs(log_level)
    settings = _settings(**options)
    exports = ExportSettings(_optional(metrics_listen), profile_dir, profile_seconds, settings.tls)
    try:
        with exported(exports) as instrumentation:
            asyncio.run(serve(settings, instrumentation))
    except (SettingsError, StoreError) as error:
        raise click.ClickException(str(error)) from error


def _settings(
    *,
    listen: str,
    health_listen: str | None,
    store: str,
    name: str | None,
    checkpoint_seconds: float,
    maximum_running_jobs: int,
    maximum_running_jobs_per_user: int,
    maximum_packets_per_job: int | None,
    price_per_cpu_hour: float | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_client_ca: Path | None,
    insecure: bool,
    reflection: bool,
    maximum_spec_bytes: int,
    maximum_open_streams: int,
    ray_address: str,
    ray_threads_per_actor: int,
    ray_actors: int | None,
    ray_resource: str,
    mirror: str | None,
    ray_listen: str,
    **rest: Any,
) -> ServerSettings:
    from remy_services.coordinator.checkpointing import RunSettings
    from remy_services.coordinator.farm import CallLimits, FarmSettings
    from remy_services.coordinator.server import ServerSettings
    from remy_services.evaluation.transport.ray import RaySettings
    from remy_services.jobs.progress import QueueLimits

    farm = FarmSettings(
        runs=RunSettings(
            checkpoint_seconds=checkpoint_seconds,
            maximum_packets=maximum_packets_per_job,
            price_per_cpu_hour=price_per_cpu_hour,
        ),
        jobs=QueueLimits(maximum_running_jobs, maximum_running_jobs_per_user),
        calls=CallLimits(spec_bytes=maximum_spec_bytes, open_streams=maximum_open_streams),
    )
    return ServerSettings(
        listen=_address(listen),
        health_listen=_optional(health_listen),
        store_url=store,
        name=name or socket.gethostname(),
        farm=farm,
        ray=RaySettings(
            ray_address,
            ray_threads_per_actor,
            ray_actors,
            ray_resource,
            listen=_address(ray_listen),
        ),
        tls=_tls(tls_cert, tls_key, tls_client_ca),
        mirror_url=mirror,
        is_insecure=insecure,
        has_reflection=reflection,
        **rest,
    )


def _optional(text: str | None) -> Address | None:
    return None if text is None else _address(text)


def _address(text: str) -> Address:
    from remy_rpc.settings import SettingsError, parse_listen_address

    try:
        return parse_listen_address(text)
    except SettingsError as error:
        raise click.UsageError(str(error)) from error


def _tls(cert: Path | None, key: Path | None, client_ca: Path | None) -> ServerTls | None:
    from remy_services.coordinator.tls import ServerTls

    if cert is not None and key is not None:
        return ServerTls(cert, key, client_ca)
    if cert is None and key is None and client_ca is None:
        return None
    raise click.UsageError("TLS needs both --tls-cert and --tls-key")
