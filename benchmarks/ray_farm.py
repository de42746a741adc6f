"""Evaluates on a Ray cluster from synchronous code."""

from __future__ import annotations

from typing import Any

from benchmarks.ray_cluster import RayCluster, wait_until
from benchmarks.worker_farm import Fleet
from remy_farm.evaluation.interface import SharedEvaluator
from remy_services.transport.ray import RayFleet, RaySettings


class RayFarm(Fleet):
    """Evaluates on a running Ray cluster through its own driver process."""

    def __init__(
        self, cluster: RayCluster, settings: RaySettings | None = None, **options: Any
    ) -> None:
        """`options` are passed to RayFleet."""
        super().__init__(self._make_fleet)
        self._cluster = cluster
        self._settings = settings or RaySettings(address=cluster.address, log_level="warning")
        self._options = options

    @property
    def fleet(self) -> RayFleet:
        """The Ray evaluator; call it in the event loop only."""
        assert isinstance(self._evaluator, RayFleet)
        return self._evaluator

    def wait_for_workers(self, count: int) -> None:
        """Returns once exactly `count` actors are connected."""
        wait_until(
            lambda: self.call_in_loop(self.fleet.snapshot).workers == count,
            f"{count} connected actors",
        )

    def _make_fleet(self) -> SharedEvaluator:
        return RayFleet(self._settings, **self._options)

    async def _open(self) -> None:
        await super()._open()
        with self._cluster.as_environment():
            self.fleet.begin()
