"""Settings and exit codes of a worker."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from remy_rpc.settings import (
    Address,
    TlsFiles,
    Token,
    UnixSocket,
    parse_coordinator,
    parse_listen_address,
    tls_settings,
)
from remy_simulator.cpus import allowed_cpus


class ExitCode(IntEnum):
    """Exit codes of `remy-worker`; those that `remy-farm` also has mean the same."""

    #: No work was left, or the worker was told to exit, or its machine is being interrupted.
    DONE = 0
    #: A bug in the worker or the simulator. The coordinator counts it against the running tasks.
    INTERNAL = 1
    #: Invalid flags, addresses or files.
    BAD_INPUT = 2
    #: Only for the Ray driver: the cluster is unreachable or lost.
    UNREACHABLE = 3
    #: The token is missing or wrong, or has another role.
    NOT_ALLOWED = 4
    #: The coordinator has quarantined this worker.
    REFUSED = 6
    #: The simulator differs from the coordinator's, or the coordinator accepts no workers.
    UNSUITABLE = 7


@dataclass(frozen=True)
class WorkerSettings:
    """All settings of a worker. Times are in seconds."""

    coordinator: Address | UnixSocket
    #: Unique among workers.
    worker_id: str
    threads: int
    #: None for plain text.
    tls: TlsFiles | None = None
    #: A token, or the file that contains it, which is read at every call; None for no token.
    token: Token | Path | None = None
    #: Work for this job only; empty for any job.
    job_id: str = ""
    exit_when_idle: bool = False
    #: Exit code after a signal or an EC2 interruption notice.
    interrupted_exit_code: int = 0
    pin_threads: bool = False
    #: URL of the EC2 metadata service to poll for interruption notices; None for no polling.
    metadata_url: str | None = None
    #: Address that serves Prometheus metrics; None to serve none.
    metrics_listen: Address | None = None
    #: Time for running tasks to finish after a shutdown request or a disconnection; tasks that take
    #: longer are interrupted.
    drain_seconds: float = 0.5


def unique_worker_id() -> str:
    """Returns a unique worker id that begins with the host name."""
    return f"{socket.gethostname()}-{secrets.token_hex(4)}"


def parse_settings(options: Mapping[str, Any]) -> WorkerSettings:
    """Builds the settings from the options of the command. Raises SettingsError."""
    coordinator = parse_coordinator(options["coordinator"])
    files = TlsFiles(
        options["tls_ca"], options["tls_cert"], options["tls_key"], options["tls_server_name"]
    )
    listen = options["metrics_listen"]
    return WorkerSettings(
        coordinator=coordinator,
        worker_id=unique_worker_id(),
        threads=options["threads"] or allowed_cpus(),
        tls=tls_settings(files, insecure=options["insecure"], coordinator=coordinator),
        token=options["token_file"],
        job_id=options["job_id"],
        exit_when_idle=options["exit_when_idle"],
        interrupted_exit_code=options["interrupted_exit_code"],
        pin_threads=options["pin_threads"],
        metadata_url=options["ec2_metadata_url"] if options["ec2_interruption_notices"] else None,
        metrics_listen=None if listen is None else parse_listen_address(listen),
    )
