"""`remy-farm coordinator`: the server that a team's designs share."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remy_services.cli.coordinator_options import VARIABLE_PREFIX, coordinator_options

if TYPE_CHECKING:
    from remy_services.client.address import Address
    from remy_services.coordinator.serving import ServerSettings, TlsFiles


@click.command(
    "coordinator",
    context_settings={"auto_envvar_prefix": VARIABLE_PREFIX},
    epilog="Every flag may be set by the variable that stands behind it, or in the file that "
    "--config names. docs/operations.md says more.",
)
@coordinator_options
def command(
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
    from remy_services.coordinator.serving import SettingsError, serve
    from remy_services.coordinator.serving.exports import ExportSettings, exported
    from remy_services.stores import StoreError
    from remy_services.telemetry.logs import set_up_logs

    set_up_logs(log_level)
    settings = _settings(**options)
    exports = ExportSettings(_optional(metrics_listen), profile_dir, profile_seconds, settings.tls)
    try:
        with exported(exports) as surroundings:
            asyncio.run(serve(settings, surroundings))
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
    **rest: Any,
) -> ServerSettings:
    from remy_services.coordinator.running import RunSettings
    from remy_services.coordinator.serving import ServerSettings
    from remy_services.coordinator.settings import CallLimits, FarmSettings
    from remy_services.fleet.ray import RaySettings
    from remy_services.jobs.queue import Limits

    farm = FarmSettings(
        runs=RunSettings(
            checkpoint_seconds=checkpoint_seconds,
            maximum_packets=maximum_packets_per_job,
            price_per_cpu_hour=price_per_cpu_hour,
        ),
        jobs=Limits(maximum_running_jobs, maximum_running_jobs_per_user),
        calls=CallLimits(spec_bytes=maximum_spec_bytes, open_streams=maximum_open_streams),
    )
    return ServerSettings(
        listen=_address(listen),
        health_listen=_optional(health_listen),
        store_url=store,
        name=name or socket.gethostname(),
        farm=farm,
        ray=RaySettings(ray_address, ray_threads_per_actor, ray_actors, ray_resource),
        tls=_tls(tls_cert, tls_key, tls_client_ca),
        is_insecure=insecure,
        has_reflection=reflection,
        **rest,
    )


def _optional(text: str | None) -> Address | None:
    return None if text is None else _address(text)


def _address(text: str) -> Address:
    from remy_services.coordinator.serving.listening import parse_listen_address

    try:
        return parse_listen_address(text)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _tls(cert: Path | None, key: Path | None, client_ca: Path | None) -> TlsFiles | None:
    from remy_services.coordinator.serving import TlsFiles

    if cert is not None and key is not None:
        return TlsFiles(cert, key, client_ca)
    if cert is None and key is None and client_ca is None:
        return None
    raise click.UsageError("TLS needs both --tls-cert and --tls-key")
