"""Which cluster, and what to take of it."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass

_DRIVER = "remy_workers.ray"


class RayUnavailable(Exception):
    """Ray is not installed here. One sentence for people."""


@dataclass(frozen=True)
class RaySettings:
    """See `python -m remy_workers.ray --help`."""

    #: HOST:PORT, ray://HOST:PORT, or auto.
    address: str = "auto"
    #: CPUs that an actor takes, and threads that it simulates in.
    threads_per_actor: int = 1
    #: How many actors to ask for; None: as many as fit on the cluster's nodes.
    actors: int | None = None
    #: Only nodes that have this resource; empty: any.
    resource: str = ""
    #: A cluster that is silent for so long is connected to anew.
    patience_seconds: float = 60.0
    log_level: str = "info"

    def command(self, socket_path: str) -> list[str]:
        """Starts a driver that calls at a socket."""
        flags = {
            "coordinator": f"unix:{socket_path}",
            "ray-address": self.address,
            "threads-per-actor": self.threads_per_actor,
            "resource": self.resource,
            "patience-seconds": self.patience_seconds,
            "log-level": self.log_level,
        }
        if self.actors is not None:
            flags["actors"] = self.actors
        return [sys.executable, "-m", _DRIVER, *(f"--{name}={flags[name]}" for name in flags)]


def check_installed() -> None:
    """Raises RayUnavailable."""
    for module in ("ray", "remy_workers"):
        if importlib.util.find_spec(module) is None:
            raise RayUnavailable(
                "evaluation on Ray needs remy-farm-worker with its extra 'ray' installed beside "
                f"remy-farm; there is no module {module}"
            )
