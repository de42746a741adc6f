"""`remy-farm coordinator`: the server that runs a team's design jobs, and its settings."""

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
    flag,
    option,
)
from remy_rpc.settings import Address, SettingsError, parse_listen_address
from remy_simulator.cpus import allowed_cpus

if TYPE_CHECKING:
    from remy_services.coordinator import ServerSettings, ServerTls

#: Prefix of this command's environment variables, e.g. REMY_FARM_COORDINATOR_LISTEN for --listen.
VARIABLE_PREFIX = "REMY_FARM_COORDINATOR"

_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, exists=True, path_type=Path)
_MAX_CONFIG_BYTES = 1 << 20


def _read_config(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Uses the settings in a YAML file as defaults of this command's options."""
    if path is None:
        return
    from remy_farm.files import read_file
    from remy_farm.specification import read_yaml

    try:
        text = read_file(path, limit=_MAX_CONFIG_BYTES).decode()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{path} is not UTF-8 text") from error
    tree = read_yaml(text, str(path))
    if not isinstance(tree, dict):
        raise click.UsageError(f"{path} must be a mapping of settings, e.g. 'listen: 0.0.0.0:7390'")
    names = {str(each.name).replace("_", "-"): str(each.name) for each in context.command.params}
    del names["config"]
    for key, value in tree.items():
        if key not in names:
            raise click.UsageError(
                f"{path}: {key[:60]!r} is not a setting; the settings are "
                f"{', '.join(sorted(names))}"
            )
        if isinstance(value, list | dict) or value is None:
            raise click.UsageError(f"{path}: {key} must be a single value")
    defaults = {
        names[key]: value if isinstance(value, bool) else str(value) for key, value in tree.items()
    }
    context.default_map = {**(context.default_map or {}), **defaults}


# Variables of the other commands, and of other programs.
_OTHER_VARIABLES = frozenset(
    f"REMY_FARM_{name}"
    for name in (
        *("CLUSTER_TOOL", "CONFIG", "COORDINATOR", "INSECURE", "PATIENCE", "TOKEN", "TOKEN_FILE"),
        *("TLS_CA", "TLS_CERT", "TLS_KEY", "TLS_SERVER_NAME"),
        *("RAY_ADDRESS", "REDIS_PASSWORD", "REDIS_PASSWORD_FILE"),
    )
)
_OTHER_PREFIXES = ("REMY_FARM_WORKER_", "REMY_FARM_E2E_")
# Variables that Kubernetes adds to pods for each Service in the namespace.
_SERVICE_LINK = re.compile(r"_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT(_[0-9]+_(TCP|UDP|SCTP).*)?$")


def check_environment(environment: Mapping[str, str]) -> None:
    """Raises SettingsError for an unknown REMY_FARM_ variable, which would be ignored silently."""
    of_options = {f"{VARIABLE_PREFIX}_{each.name}".upper() for each in command.params}
    known = _OTHER_VARIABLES | of_options
    for name in sorted(environment):
        if (
            name.startswith("REMY_FARM_")
            and name not in known
            and not name.startswith(_OTHER_PREFIXES)
            and not _SERVICE_LINK.search(name)
        ):
            closest = difflib.get_close_matches(name, known, n=1)
            suggestion = f"; did you mean {closest[0]}?" if closest else ""
            raise SettingsError(f"the environment has {name}, which is not a setting{suggestion}")


@click.command(
    "coordinator",
    context_settings={"auto_envvar_prefix": VARIABLE_PREFIX},
    epilog="Every option can also be set by the environment variable shown with it, or in the "
    "--config file. See docs/how-to/operations.md.",
)
@option(
    "--config FILE",
    "YAML file of settings, named like the options without the leading dashes. Options and "
    "environment variables override it.",
    _FILE,
    is_eager=True,
    expose_value=False,
    callback=_read_config,
)
@option(
    "--listen HOST:PORT",
    "Address to serve at; port 0 selects a free port. Serving other hosts requires TLS and tokens.",
    default="127.0.0.1:50051",
)
@option(
    "--health-listen HOST:PORT",
    "Also serve only the gRPC health service at this address, without TLS.",
)
@option(
    "--tokens-file FILE",
    "YAML file of access tokens and roles; read again whenever it changes.",
    _FILE,
)
@option("--tls-cert FILE", "Certificate of the server (PEM).", _FILE)
@option("--tls-key FILE", "Private key of --tls-cert (PEM).", _FILE)
@option(
    "--tls-client-ca FILE",
    "Only accept clients with a certificate signed by one of these CAs (PEM).",
    _FILE,
)
@flag("--insecure", "Serve other hosts even without TLS or tokens.")
@option(
    "--reflection/--no-reflection",
    "List the available services to callers (gRPC reflection).",
    default=True,
)
@option(
    "--maximum-message-bytes N",
    "Maximum size of a gRPC message.",
    click.IntRange(min=1 << 16),
    default=16 << 20,
)
@option(
    "--maximum-open-streams N",
    "Maximum number of open watches and transfers.",
    POSITIVE_INT,
    default=1000,
)
@option(
    "--grace-seconds S",
    "Shut down within S seconds after SIGTERM or Ctrl-C.",
    NOT_NEGATIVE,
    default=20.0,
)
@option("--ready-file FILE", "Write the address to this file once the coordinator serves.", _FILE)
@option(
    "--store URL",
    "Store of the jobs, e.g. sqlite:///PATH or redis://HOST:PORT/DATABASE.",
    default="sqlite:remy-farm.db",
)
@flag("--accept-data-loss", "Allow a store that may lose acknowledged commits.")
@option(
    "--mirror URL",
    "Also keep an archive of every job at this URL, updated at each epoch: file:///DIRECTORY or "
    "s3://BUCKET/FOLDER.",
)
@option(
    "--retention-days D",
    "Delete jobs from the store D days after they end; archives of --mirror are kept.",
    NOT_NEGATIVE,
    show_default="forever",
)
@option("--name NAME", "Name of this coordinator, shown to users.", show_default="the host's name")
@option(
    "--checkpoint-seconds S",
    "Commit each job at most once every S seconds; a crash loses up to S seconds of work.",
    NOT_NEGATIVE,
    default=1.0,
)
@option(
    "--maximum-running-jobs N",
    "Maximum number of running jobs; others wait, ordered by priority.",
    POSITIVE_INT,
    default=100,
)
@option(
    "--maximum-running-jobs-per-user N",
    "Maximum number of running jobs per owner.",
    POSITIVE_INT,
    default=100,
)
@option(
    "--maximum-packets-per-job N",
    "Maximum number of packets that a job may simulate.",
    POSITIVE_INT,
    show_default="unlimited",
)
@option(
    "--maximum-spec-bytes N", "Maximum size of a specification.", POSITIVE_INT, default=256 << 10
)
@option("--price-per-cpu-hour PRICE", "Price used to estimate the cost of jobs.", NOT_NEGATIVE)
@option(
    "--evaluator",
    "Simulate in this process (local), on connected workers, or on a Ray cluster.",
    click.Choice(["local", "workers", "ray"]),
    default="local",
)
@option(
    "--threads N",
    "Number of threads of the evaluator 'local'.",
    THREADS,
    default=allowed_cpus,
    show_default="the CPUs allowed",
)
@option(
    "--ray-address ADDRESS",
    "Address for the evaluator 'ray': HOST:PORT of the head node if this machine is in the "
    "cluster, ray://HOST:PORT if it is not, or auto for this machine's cluster.",
    default="auto",
    envvar=[f"{VARIABLE_PREFIX}_RAY_ADDRESS", "REMY_FARM_RAY_ADDRESS"],
)
@option(
    "--ray-threads-per-actor N", "CPUs that each Ray actor reserves and uses.", THREADS, default=1
)
@option(
    "--ray-actors N",
    "Number of Ray actors to request; Ray's autoscaler may add nodes for them.",
    POSITIVE_INT,
    show_default="as many as fit on the nodes",
)
@option(
    "--ray-resource NAME",
    "Only use Ray nodes with this custom resource.",
    default="",
    show_default="any node",
)
@option(
    "--ray-listen HOST:PORT",
    "Address at which Ray actors connect; port 0 selects a free port.",
    default="0.0.0.0:0",
)
@option(
    "--reproductions DIR",
    "Save evaluation tasks that repeatedly crashed their workers, to reproduce the crash; a "
    "directory, or a URL like --mirror.",
)
@option(
    "--kubernetes-workers FILE",
    "Run workers for each job on Kubernetes, as configured in this YAML file; the Helm chart "
    "writes it.",
    _FILE,
)
@flag(
    "--kubernetes-design-jobs",
    "Run the DesignJob objects of the Kubernetes namespace, and show all jobs as such objects.",
)
@option(
    "--metrics-listen HOST:PORT",
    "Serve Prometheus metrics at this address, without TLS or authentication.",
)
@option(
    "--profile-dir DIR",
    "Directory for the profile that signal USR2 starts.",
    _FOLDER,
    default=Path(gettempdir()),
)
@option(
    "--profile-seconds S",
    "Duration of a profile, during which the coordinator runs about half as fast.",
    FiniteRange(min=0, min_open=True, max=3600),
    default=30.0,
)
@option(
    "--log-level",
    "Minimum level of log messages on standard error.",
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
    """Run the server that stores and runs a team's design jobs.

    SIGTERM or Ctrl-C saves a checkpoint of every job. The next coordinator on the same store
    resumes the jobs, also after a crash.
    """
    import asyncio

    from remy_rpc.logs import set_up_logs
    from remy_services.coordinator import ExportSettings, serve, telemetry_export
    from remy_services.stores import StoreError

    set_up_logs(log_level)
    try:
        check_environment(os.environ)
        settings = _settings(**options)
        metrics_address = _optional_address(metrics_listen)
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    exports = ExportSettings(metrics_address, profile_dir, profile_seconds, settings.tls)
    try:
        with telemetry_export(exports) as instrumentation:
            asyncio.run(serve(settings, instrumentation))
    except (SettingsError, StoreError) as error:
        raise click.ClickException(str(error)) from error


def _settings(**options: Any) -> ServerSettings:
    """Builds ServerSettings from the options. Raises SettingsError.

    The options that are not handled here have the names of ServerSettings' fields.
    """
    from remy_services.coordinator import CallLimits, FarmSettings, RunSettings, ServerSettings
    from remy_services.jobs import QueueLimits
    from remy_services.transport import RaySettings

    pop = options.pop
    days = pop("retention_days")
    farm = FarmSettings(
        retention_seconds=None if days is None else days * 86400,
        runs=RunSettings(
            checkpoint_seconds=pop("checkpoint_seconds"),
            maximum_packets=pop("maximum_packets_per_job"),
            price_per_cpu_hour=pop("price_per_cpu_hour"),
        ),
        jobs=QueueLimits(pop("maximum_running_jobs"), pop("maximum_running_jobs_per_user")),
        calls=CallLimits(
            spec_bytes=pop("maximum_spec_bytes"), open_streams=pop("maximum_open_streams")
        ),
    )
    ray = RaySettings(
        pop("ray_address"),
        pop("ray_threads_per_actor"),
        pop("ray_actors"),
        pop("ray_resource"),
        listen=parse_listen_address(pop("ray_listen")),
    )
    return ServerSettings(
        listen=parse_listen_address(pop("listen")),
        health_listen=_optional_address(pop("health_listen")),
        store_url=pop("store"),
        name=pop("name") or socket.gethostname(),
        farm=farm,
        ray=ray,
        tls=_tls(pop("tls_cert"), pop("tls_key"), pop("tls_client_ca")),
        mirror_url=pop("mirror"),
        is_insecure=pop("insecure"),
        has_reflection=pop("reflection"),
        **options,
    )


def _optional_address(text: str | None) -> Address | None:
    return None if text is None else parse_listen_address(text)


def _tls(cert: Path | None, key: Path | None, client_ca: Path | None) -> ServerTls | None:
    from remy_services.coordinator import ServerTls

    if cert is not None and key is not None:
        return ServerTls(cert, key, client_ca)
    if cert is None and key is None and client_ca is None:
        return None
    raise SettingsError("TLS needs both --tls-cert and --tls-key")
