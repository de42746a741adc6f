"""A fleet on a Ray cluster from ordinary code."""

from __future__ import annotations

from typing import Any

from benchmarks.ray_cluster import RayCluster, wait_until
from benchmarks.worker_farm import Fleet
from remy_farm.evaluation.interface import SharedEvaluator
from remy_services.transport.ray import RayFleet, RaySettings


class RayFarm(Fleet):
    """Evaluates on a cluster that is there, through a driver of its own."""

    def __init__(
        self, cluster: RayCluster, settings: RaySettings | None = None, **options: Any
    ) -> None:
        """`options` are RayFleet's."""
        super().__init__(self._make_fleet)
        self._cluster = cluster
        self._settings = settings or RaySettings(address=cluster.address, log_level="warning")
        self._options = options

    @property
    def fleet(self) -> RayFleet:
        """The evaluator."""
        assert isinstance(self._evaluator, RayFleet)
        return self._evaluator

    def wait_for_workers(self, count: int) -> None:
        """Returns once exactly so many actors work."""
        wait_until(
            lambda: self.now(self.fleet.snapshot).workers == count, f"{count} actors at work"
        )

    def _make_fleet(self) -> SharedEvaluator:
        return RayFleet(self._settings, **self._options)

    async def _open(self) -> None:
        await super()._open()
        with self._cluster.as_environment():
            self.fleet.begin()
