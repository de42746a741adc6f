"""A small farm with everything in it, watched by a Prometheus: Redis, coordinator, workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dashboards.prometheus import Prometheus
from remy_services.client.connection import Connection
from remy_services.client.design_client import DesignClient
from remy_services.client.settings import Given, settings_of
from services.tests.cli.service.real_coordinator import Coordinator
from services.tests.stores.local_redis import LocalRedis
from tests.observability.event_log import metrics_addresses
from tests.observability.local_prometheus import LocalPrometheus
from tests.observability.local_worker import LocalWorker
from tests.waiting import DEADLINE_SECONDS

_WORKERS = 3


@dataclass(frozen=True)
class WatchedFarm:
    """What to talk to."""

    client: DesignClient
    prometheus: Prometheus
    workers: Sequence[LocalWorker]


@contextmanager
def watched_farm(folder: Path) -> Iterator[WatchedFarm]:
    """Runs in a folder of its own while this lasts."""
    with ExitStack() as ending:
        redis = ending.enter_context(LocalRedis(_made(folder / "redis")))
        coordinator = Coordinator(
            folder / "coordinator",
            *("--store", redis.url, "--evaluator", "workers"),
            *("--metrics-listen", "127.0.0.1:0", "--price-per-cpu-hour", "0.05"),
        )
        ending.callback(coordinator.close)
        coordinator.start()
        logs = _made(folder / "workers")
        workers = [
            ending.enter_context(LocalWorker(coordinator.address, logs / f"{number}.log"))
            for number in range(_WORKERS)
        ]
        targets = {
            "coordinator": metrics_addresses(coordinator.log()),
            "worker": [worker.metrics_address for worker in workers],
        }
        scraped = [
            {"job_name": name, "static_configs": [{"targets": addresses}]}
            for name, addresses in targets.items()
        ]
        prometheus = ending.enter_context(LocalPrometheus(_made(folder / "prometheus"), scraped))
        settings = settings_of(Given(coordinator=coordinator.address), {}, Given(), file_name="")
        connection = ending.enter_context(Connection(settings, deadline_seconds=DEADLINE_SECONDS))
        yield WatchedFarm(DesignClient(connection), prometheus, workers)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
