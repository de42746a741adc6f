"""What simulations cost: an estimate by job, learned from the tasks that are done."""

from __future__ import annotations

from remy_farm.v1 import evaluation_pb2

# Before anything is known: what a link's packet costs on a machine of some years ago.
_FIRST_GUESS_SECONDS_PER_PACKET = 2e-8
# Starting a simulation costs as much as some packets.
_PACKETS_PER_SIMULATION = 1000.0
# Beyond this a request makes no sense, which is for the simulator to say.
_MOST_PACKETS = 1e15
# How much of what was known is kept at every task: the tables of a search change as it goes on.
_MEMORY = 0.9


def expected_packets(specimen: evaluation_pb2.Specimen, duration_ms: float) -> float:
    """Packets that the specimen's link can serve: what one simulation's cost is proportional to."""
    packets = specimen.link_rate_packets_per_ms * duration_ms
    return _PACKETS_PER_SIMULATION + (packets if 0 <= packets <= _MOST_PACKETS else 0.0)


class CostEstimate:
    """CPU seconds per expected packet, as one job's tasks have taken lately."""

    def __init__(self) -> None:
        self._packets = 0.0
        self._seconds = 0.0

    @property
    def known(self) -> bool:
        """Whether a task has been done."""
        return self._packets > 0.0 and self._seconds > 0.0

    @property
    def seconds_per_packet(self) -> float:
        """The estimate; positive."""
        return self._seconds / self._packets if self.known else _FIRST_GUESS_SECONDS_PER_PACKET

    def learn(self, packets: float, cpu_seconds: float) -> None:
        """A task of so many expected packets took so long."""
        self._packets = self._packets * _MEMORY + packets
        self._seconds = self._seconds * _MEMORY + cpu_seconds
