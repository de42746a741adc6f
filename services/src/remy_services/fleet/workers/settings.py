"""How a coordinator treats its workers."""

from __future__ import annotations

from dataclasses import dataclass, field

from remy_services.fleet.board import BoardSettings

# Heartbeats in a lease: some may come late, or get lost with a stalled machine.
_HEARTBEATS_PER_LEASE = 6
# A task that may have ended its worker waits for one that has been heard of since.
_LONGEST_SECONDS_BETWEEN_HEARTBEATS = 2.0


@dataclass(frozen=True)
class WorkerFleetSettings:
    """Times are seconds."""

    board: BoardSettings = field(default_factory=BoardSettings)
    #: How long there must have been nothing to do before workers that exit when idle are told.
    idle_seconds: float = 10.0
    #: How long a caller may take to say who it is.
    hello_seconds: float = 10.0

    @property
    def heartbeat_seconds(self) -> float:
        """How often a worker should be heard of."""
        by_lease = self.board.lease_seconds / _HEARTBEATS_PER_LEASE
        return min(by_lease, _LONGEST_SECONDS_BETWEEN_HEARTBEATS)
