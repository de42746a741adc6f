"""Runs a small farm (Redis, coordinator, workers) that a Prometheus scrapes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dashboards.prometheus import Prometheus
from remy_services.client.connection import Connection
from remy_services.client.design_client import DesignClient
from remy_services.client.settings import SettingsSource, combine_settings
from services.tests.cli.service.real_coordinator import Coordinator
from services.tests.stores.local_redis import LocalRedis, free_port
from tests.observability.local_prometheus import LocalPrometheus
from tests.observability.local_worker import LocalWorker
from tests.waiting import TIMEOUT_SECONDS


@dataclass
class WatchedFarm:
    """The parts of the running farm."""

    client: DesignClient
    prometheus: Prometheus
    coordinator: Coordinator
    _folder: Path
    _ending: ExitStack
    workers: list[LocalWorker] = field(default_factory=list)
    _started: int = 0

    def replace_worker(self, place: int) -> None:
        """Starts a worker in place of one that has ended, and has Prometheus scrape it."""
        self.workers[place : place + 1] = [self._new_worker()]
        watch(self._folder, [worker.metrics_address for worker in self.workers])

    def _new_worker(self) -> LocalWorker:
        self._started += 1
        log = self._folder / f"worker-{self._started}.log"
        return self._ending.enter_context(LocalWorker(self.coordinator.address, log))


def watch(folder: Path, addresses: list[str]) -> None:
    """Makes Prometheus scrape workers at these addresses."""
    changed = folder / "workers.new"
    changed.write_text(json.dumps([{"targets": addresses}]))
    changed.rename(folder / "workers.json")


@contextmanager
def watched_farm(folder: Path, workers: int = 3) -> Iterator[WatchedFarm]:
    """Runs the farm with its files in a folder, within the context."""
    with ExitStack() as ending:
        redis = ending.enter_context(LocalRedis(_made(folder / "redis")))
        metrics = f"127.0.0.1:{free_port()}"
        coordinator = Coordinator(
            folder / "coordinator",
            *("--store", redis.url, "--evaluator", "workers"),
            *("--metrics-listen", metrics, "--price-per-cpu-hour", "0.05"),
            *("--mirror", f"file://{folder}/mirror"),
        )
        ending.callback(coordinator.close)
        coordinator.start()
        watch(folder, [])
        scraped = [
            {"job_name": "coordinator", "static_configs": [{"targets": [metrics]}]},
            {"job_name": "worker", "file_sd_configs": [{"files": [str(folder / "workers.json")]}]},
        ]
        prometheus = ending.enter_context(LocalPrometheus(_made(folder / "prometheus"), scraped))
        settings = combine_settings(
            SettingsSource(coordinator=coordinator.address), {}, SettingsSource(), file_name=""
        )
        connection = ending.enter_context(Connection(settings, deadline_seconds=TIMEOUT_SECONDS))
        farm = WatchedFarm(DesignClient(connection), prometheus, coordinator, folder, ending)
        for place in range(workers):
            farm.replace_worker(place)
        yield farm


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
