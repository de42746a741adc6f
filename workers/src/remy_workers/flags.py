"""What the flags of the command come to."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping
from typing import Any

from remy_simulator.cpus import allowed_cpus
from remy_workers.address import parse_address, parse_coordinator
from remy_workers.settings import SettingsError, TlsFiles, WorkerSettings


def settings_of(options: Mapping[str, Any]) -> WorkerSettings:
    """The settings of a worker with a name of its own. Raises SettingsError."""
    try:
        coordinator = parse_coordinator(options["coordinator"])
        listen = options["metrics_listen"]
        metrics_listen = None if listen is None else parse_address(listen)
    except ValueError as error:
        raise SettingsError(str(error)) from error
    return WorkerSettings(
        coordinator=coordinator,
        worker_id=f"{socket.gethostname()}-{secrets.token_hex(4)}",
        threads=options["threads"] or allowed_cpus(),
        tls=_tls(options, coordinator.is_loopback),
        token_file=options["token_file"],
        job_id=options["job_id"],
        exit_when_idle=options["exit_when_idle"],
        interrupted_exit_code=options["interrupted_exit_code"],
        pin_threads=options["pin_threads"],
        metadata_url=options["ec2_metadata_url"] if options["ec2_interruption_notices"] else None,
        metrics_listen=metrics_listen,
    )


def _tls(options: Mapping[str, Any], is_loopback: bool) -> TlsFiles | None:
    """TLS unless it is refused, or needless and not asked for."""
    names = ("tls_ca", "tls_cert", "tls_key", "tls_server_name")
    asked = [name for name in names if options[name] is not None]
    if options["insecure"] and asked:
        flag = "--" + asked[0].replace("_", "-")
        raise SettingsError(f"{flag} makes no sense with --insecure; give one of them")
    if (options["tls_cert"] is None) != (options["tls_key"] is None):
        raise SettingsError("--tls-cert and --tls-key go together; one of them is missing")
    if options["insecure"] or (is_loopback and not asked):
        return None
    return TlsFiles(*(options[name] for name in names))
