"""How a coordinator and its server are set up."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from remy_rpc.settings import Address, SettingsError
from remy_services.coordinator.farm import FarmSettings
from remy_services.evaluation.transport.ray import RaySettings


@dataclass(frozen=True)
class ServerTls:
    """Paths of PEM files."""

    certificate: Path
    key: Path
    #: Of the authorities that must have signed a client's certificate; None: clients need none.
    client_ca: Path | None = None


@dataclass(frozen=True)
class ServerSettings:
    """Everything that a coordinator is told when it starts."""

    listen: Address
    store_url: str
    #: Of this coordinator, for people.
    name: str
    farm: FarmSettings = field(default_factory=FarmSettings)
    accept_data_loss: bool = False
    #: Of a second place for jobs; None: there is none.
    mirror_url: str | None = None
    #: "local", "workers" or "ray".
    evaluator: str = "local"
    #: Of the evaluator "local".
    threads: int = 1
    #: Of the evaluator "ray".
    ray: RaySettings = field(default_factory=RaySettings)
    #: Folder for evaluation tasks that were given up because they kept ending their workers; None:
    #: they are not written.
    reproductions: Path | None = None
    #: Serves health alone, in plain text; None: only the other address does.
    health_listen: Address | None = None
    tls: ServerTls | None = None
    tokens_file: Path | None = None
    #: Whether to serve others than this machine without TLS and tokens.
    is_insecure: bool = False
    has_reflection: bool = True
    #: How Kubernetes is to run workers for each job; None: it is not.
    kubernetes_workers: Path | None = None
    maximum_message_bytes: int = 16 << 20
    #: On one connection.
    maximum_streams: int = 1000
    #: For leaving the last checkpoints when the server is told to end.
    grace_seconds: float = 20.0
    #: Is written when the server serves, and holds its address.
    ready_file: Path | None = None

    def check(self) -> None:
        """Raises SettingsError if it would not be safe to serve like this."""
        if self.listen.is_loopback or self.is_insecure:
            return
        missing = [
            flag
            for flag, value in (
                ("--tls-cert and --tls-key", self.tls),
                ("--tokens-file", self.tokens_file),
            )
            if value is None
        ]
        if missing:
            raise SettingsError(
                f"{self.listen} can be reached by others, and {' and '.join(missing)} "
                f"{'is' if len(missing) == 1 else 'are'} missing; give them, listen on 127.0.0.1, "
                f"or accept the risk with --insecure"
            )
