"""`remy-farm coordinator`: the server that a team's designs share, and its settings."""

from __future__ import annotations

import difflib
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any

import click

from remy_cli.common import (
    NOT_NEGATIVE,
    POSITIVE_INT,
    THREADS,
    FiniteRange,
    option,
    switch,
)
from remy_rpc.settings import Address, SettingsError, parse_listen_address
from remy_simulator.cpus import allowed_cpus

if TYPE_CHECKING:
    from remy_services.coordinator import ServerSettings, ServerTls

#: What the environment's variables begin with; --listen is REMY_FARM_COORDINATOR_LISTEN.
VARIABLE_PREFIX = "REMY_FARM_COORDINATOR"

_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, exists=True, path_type=Path)
_MOST_CONFIG_BYTES = 1 << 20


def _read_config(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Makes a file's settings the defaults of this command."""
    if path is None:
        return
    from remy_farm.files import read_file
    from remy_farm.specification import read_yaml

    try:
        text = read_file(path, limit=_MOST_CONFIG_BYTES).decode()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{path} is not UTF-8 text") from error
    tree = read_yaml(text, str(path))
    if not isinstance(tree, dict):
        raise click.UsageError(
            f"{path} must be a mapping of settings, as in 'listen: 0.0.0.0:7390'"
        )
    names = {str(each.name).replace("_", "-"): str(each.name) for each in context.command.params}
    del names["config"]
    for key, value in tree.items():
        if key not in names:
            raise click.UsageError(
                f"{path}: {key[:60]!r} is no setting; there are {', '.join(sorted(names))}"
            )
        if isinstance(value, list | dict) or value is None:
            raise click.UsageError(f"{path}: {key} must be one value")
    given = {
        names[key]: value if isinstance(value, bool) else str(value) for key, value in tree.items()
    }
    context.default_map = {**(context.default_map or {}), **given}


# Of every command but `coordinator`, and of programs beside it.
_OTHER_VARIABLES = frozenset(
    f"REMY_FARM_{name}"
    for name in (
        *("CLUSTER_TOOL", "CONFIG", "COORDINATOR", "INSECURE", "PATIENCE", "TOKEN", "TOKEN_FILE"),
        *("TLS_CA", "TLS_CERT", "TLS_KEY", "TLS_SERVER_NAME"),
        *("RAY_ADDRESS", "REDIS_PASSWORD", "REDIS_PASSWORD_FILE"),
    )
)
_OTHER_PREFIXES = ("REMY_FARM_WORKER_", "REMY_FARM_E2E_")
# What Kubernetes tells pods of the services beside them.
_SERVICE_LINK = re.compile(r"_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT(_[0-9]+_(TCP|UDP|SCTP).*)?$")


def check_environment(environment: Mapping[str, str]) -> None:
    """Raises SettingsError for a variable that looks like one of ours and is none: a setting that
    would silently not be in force."""
    own = {f"{VARIABLE_PREFIX}_{each.name}".upper() for each in command.params}
    known = _OTHER_VARIABLES | own
    for name in sorted(environment):
        if (
            name.startswith("REMY_FARM_")
            and name not in known
            and not name.startswith(_OTHER_PREFIXES)
            and not _SERVICE_LINK.search(name)
        ):
            closest = difflib.get_close_matches(name, known, n=1)
            meant = f"; is {closest[0]} meant?" if closest else ""
            raise SettingsError(f"the environment has {name}, which is no setting{meant}")


@click.command(
    "coordinator",
    context_settings={"auto_envvar_prefix": VARIABLE_PREFIX},
    epilog="Every flag may be set by the variable that stands behind it, or in the file that "
    "--config names. docs/how-to/operations.md says more.",
)
@option(
    "--config FILE",
    "YAML file with settings by the names of the flags, without dashes in front; flags "
    "and the environment go before it.",
    _FILE,
    is_eager=True,
    expose_value=False,
    callback=_read_config,
)
@option(
    "--listen HOST:PORT",
    "Where to serve; port 0 is any that is free. Other hosts than this one are served "
    "with TLS and tokens only.",
    default="127.0.0.1:50051",
)
@option("--health-listen HOST:PORT", "Also serve health, and nothing else, there, in plain text.")
@option(
    "--tokens-file FILE",
    "YAML file with those who may call, and what; read again when it changes.",
    _FILE,
)
@option("--tls-cert FILE", "Certificate of the server (PEM).", _FILE)
@option("--tls-key FILE", "Its private key (PEM).", _FILE)
@option(
    "--tls-client-ca FILE",
    "Only let in clients whose certificate one of these authorities signed (PEM).",
    _FILE,
)
@switch("--insecure", "Serve other hosts although TLS or tokens are missing.")
@option(
    "--reflection/--no-reflection",
    "Tell callers what services there are (gRPC reflection).",
    default=True,
)
@option(
    "--maximum-message-bytes N",
    "Size of any message.",
    click.IntRange(min=1 << 16),
    default=16 << 20,
)
@option(
    "--maximum-open-streams N", "Watches and transfers of jobs at once.", POSITIVE_INT, default=1000
)
@option(
    "--grace-seconds S",
    "When told to end (SIGTERM, Ctrl-C), do so within S seconds.",
    NOT_NEGATIVE,
    default=20.0,
)
@option("--ready-file FILE", "Write the address there when the coordinator serves.", _FILE)
@option(
    "--store URL",
    "Where jobs are kept: sqlite:///PATH, redis://HOST:PORT/DATABASE and others.",
    default="sqlite:remy-farm.db",
)
@switch("--accept-data-loss", "Use a store that may lose what it has acknowledged.")
@option(
    "--mirror URL",
    "Keep an archive of every job there, too, renewed at each epoch: file:///DIRECTORY or "
    "s3://BUCKET/FOLDER.",
)
@option(
    "--retention-days D",
    "Jobs that ended D days ago leave the store; their archive stays where --mirror says.",
    NOT_NEGATIVE,
    show_default="for ever",
)
@option("--name NAME", "Name of this coordinator, for people.", show_default="the host's name")
@option(
    "--checkpoint-seconds S",
    "Commit a job at most once in S seconds; that much work is lost with the process.",
    NOT_NEGATIVE,
    default=1.0,
)
@option(
    "--maximum-running-jobs N",
    "Jobs that run at once; others wait, by priority.",
    POSITIVE_INT,
    default=100,
)
@option(
    "--maximum-running-jobs-per-user N",
    "The same for the jobs of one owner.",
    POSITIVE_INT,
    default=100,
)
@option(
    "--maximum-packets-per-job N",
    "Packets that one job may simulate.",
    POSITIVE_INT,
    show_default="any number",
)
@option("--maximum-spec-bytes N", "Size of a specification.", POSITIVE_INT, default=256 << 10)
@option("--price-per-cpu-hour PRICE", "For the estimated cost of jobs.", NOT_NEGATIVE)
@option(
    "--evaluator",
    "Who simulates: this process, workers that call, or a Ray cluster.",
    click.Choice(["local", "workers", "ray"]),
    default="local",
)
@option(
    "--threads N",
    "Threads of the evaluator 'local'.",
    THREADS,
    default=allowed_cpus,
    show_default="the CPUs allowed",
)
@option(
    "--ray-address ADDRESS",
    "Of the evaluator 'ray': HOST:PORT of the head where this machine is a node of the "
    "cluster, ray://HOST:PORT where it is not, auto for the cluster that this machine is "
    "in.",
    default="auto",
    envvar=[f"{VARIABLE_PREFIX}_RAY_ADDRESS", "REMY_FARM_RAY_ADDRESS"],
)
@option("--ray-threads-per-actor N", "CPUs that an actor takes on its node.", THREADS, default=1)
@option(
    "--ray-actors N",
    "Actors to ask Ray for, which may have its autoscaler add nodes.",
    POSITIVE_INT,
    show_default="as many as fit on the nodes",
)
@option(
    "--ray-resource NAME",
    "Only use nodes of the Ray cluster that have this resource.",
    default="",
    show_default="any node",
)
@option(
    "--ray-listen HOST:PORT",
    "Where actors of the evaluator 'ray' call; port 0 is any that is free.",
    default="0.0.0.0:0",
)
@option(
    "--reproductions DIR",
    "Write there the evaluation tasks that were given up because they kept ending their workers: "
    "a folder, or a URL as of a mirror.",
)
@option(
    "--kubernetes-workers FILE",
    "Have Kubernetes run workers for each job, as this YAML file says; the Helm chart writes it.",
    _FILE,
)
@switch(
    "--kubernetes-design-jobs",
    "Serve the DesignJobs of the namespace on Kubernetes, and show all jobs there.",
)
@option(
    "--metrics-listen HOST:PORT",
    "Serve metrics for Prometheus there, in plain text to whoever asks.",
)
@option(
    "--profile-dir DIR",
    "Where the signal USR2 has a profile written.",
    _FOLDER,
    default=Path(gettempdir()),
)
@option(
    "--profile-seconds S",
    "How long a profile is; the coordinator is about half as fast meanwhile.",
    FiniteRange(min=0, min_open=True, max=3600),
    default=30.0,
)
@option(
    "--log-level",
    "Least level of what is logged, on standard error.",
    click.Choice(["debug", "info", "warning", "error"]),
    default="info",
)
def command(
    *,
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
    import asyncio

    from remy_rpc.logs import set_up_logs
    from remy_services.coordinator import ExportSettings, exported, serve
    from remy_services.stores import StoreError

    set_up_logs(log_level)
    try:
        check_environment(os.environ)
        settings = _settings(**options)
        shown_at = _optional(metrics_listen)
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    exports = ExportSettings(shown_at, profile_dir, profile_seconds, settings.tls)
    try:
        with exported(exports) as instrumentation:
            asyncio.run(serve(settings, instrumentation))
    except (SettingsError, StoreError) as error:
        raise click.ClickException(str(error)) from error


def _settings(**options: Any) -> ServerSettings:
    """What the options come to; raises SettingsError. Those without a group of their own have the
    names of ServerSettings' fields."""
    from remy_services.coordinator import CallLimits, FarmSettings, RunSettings, ServerSettings
    from remy_services.jobs import QueueLimits
    from remy_services.transport import RaySettings

    take = options.pop
    days = take("retention_days")
    farm = FarmSettings(
        retention_seconds=None if days is None else days * 86400,
        runs=RunSettings(
            checkpoint_seconds=take("checkpoint_seconds"),
            maximum_packets=take("maximum_packets_per_job"),
            price_per_cpu_hour=take("price_per_cpu_hour"),
        ),
        jobs=QueueLimits(take("maximum_running_jobs"), take("maximum_running_jobs_per_user")),
        calls=CallLimits(
            spec_bytes=take("maximum_spec_bytes"), open_streams=take("maximum_open_streams")
        ),
    )
    ray = RaySettings(
        take("ray_address"),
        take("ray_threads_per_actor"),
        take("ray_actors"),
        take("ray_resource"),
        listen=parse_listen_address(take("ray_listen")),
    )
    return ServerSettings(
        listen=parse_listen_address(take("listen")),
        health_listen=_optional(take("health_listen")),
        store_url=take("store"),
        name=take("name") or socket.gethostname(),
        farm=farm,
        ray=ray,
        tls=_tls(take("tls_cert"), take("tls_key"), take("tls_client_ca")),
        mirror_url=take("mirror"),
        is_insecure=take("insecure"),
        has_reflection=take("reflection"),
        **options,
    )


def _optional(text: str | None) -> Address | None:
    return None if text is None else parse_listen_address(text)


def _tls(cert: Path | None, key: Path | None, client_ca: Path | None) -> ServerTls | None:
    from remy_services.coordinator import ServerTls

    if cert is not None and key is not None:
        return ServerTls(cert, key, client_ca)
    if cert is None and key is None and client_ca is None:
        return None
    raise SettingsError("TLS needs both --tls-cert and --tls-key")
