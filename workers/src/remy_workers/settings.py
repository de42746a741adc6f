"""How a worker is set up."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from remy_workers.address import Address, UnixSocket


class SettingsError(Exception):
    """Settings that cannot be right. One sentence for the user."""


@dataclass(frozen=True)
class TlsFiles:
    """How to know the coordinator, and how it is to know this worker. Paths of PEM files."""

    #: Authorities that may have signed the coordinator's certificate; None: those that gRPC trusts.
    ca: Path | None = None
    #: Both or none.
    certificate: Path | None = None
    key: Path | None = None
    #: The name in the coordinator's certificate, where it is reached by another.
    server_name: str | None = None


@dataclass(frozen=True)
class WorkerSettings:
    """Everything that a worker is told when it starts. Times are seconds."""

    coordinator: Address | UnixSocket
    #: Unique among workers.
    worker_id: str
    threads: int
    #: None: in plain text.
    tls: TlsFiles | None = None
    #: Holds the token, and is read again at every call; None: no token.
    token_file: Path | None = None
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
    #: For ending what has begun when the worker is told to end.
    drain_seconds: float = 6.0
