"""How a worker is set up, and how it ends."""

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
    """Exit codes of `remy-worker`, the same where `remy-farm` has them too."""

    #: Nothing was left to do, or the worker was told to end, or its machine is taken away.
    DONE = 0
    #: An error of ours. A task that causes it is not blamed on anything else.
    INTERNAL = 1
    #: Flags, addresses or files that cannot be right.
    BAD_INPUT = 2
    #: Only of a driver of Ray: the cluster cannot be reached, or is lost.
    UNREACHABLE = 3
    #: The token is missing or wrong, or its role is another.
    NOT_ALLOWED = 4
    #: The coordinator will not have this worker any more: it is in quarantine.
    REFUSED = 6
    #: The coordinator has no use for any worker like this: another simulator, no workers at all.
    UNSUITABLE = 7


@dataclass(frozen=True)
class WorkerSettings:
    """Everything that a worker is told when it starts. Times are seconds."""

    coordinator: Address | UnixSocket
    #: Unique among workers.
    worker_id: str
    threads: int
    #: None: in plain text.
    tls: TlsFiles | None = None
    #: Or the file that holds it, which is read again at every call; None: no token.
    token: Token | Path | None = None
    #: Works for this job only; empty: for any.
    job_id: str = ""
    exit_when_idle: bool = False
    #: Exit code of a worker that a signal, or EC2, has told to end.
    interrupted_exit_code: int = 0
    pin_threads: bool = False
    #: Where to ask whether this machine is about to be taken away; None: do not ask.
    metadata_url: str | None = None
    #: Where Prometheus may fetch metrics; None: nowhere.
    metrics_listen: Address | None = None
    #: For ending what has begun when the worker is told to end, or its coordinator is gone; what
    #: takes longer is interrupted.
    drain_seconds: float = 0.5


def unique_worker_id() -> str:
    """The name of a worker on this machine that no other has."""
    return f"{socket.gethostname()}-{secrets.token_hex(4)}"


def settings_of(options: Mapping[str, Any]) -> WorkerSettings:
    """What the flags of the command come to. Raises SettingsError."""
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
