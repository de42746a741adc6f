"""A small farm with everything in it, watched by a Prometheus: Redis, coordinator, designs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dashboards.pictures.prometheus import Prometheus
from remy_services.client import Connection, DesignClient, Given, settings_of
from services.tests.cli.service.real_coordinator import Coordinator
from services.tests.stores.local_redis import LocalRedis
from tests.observability.local_prometheus import LocalPrometheus


@dataclass(frozen=True)
class WatchedFarm:
    """What to talk to."""

    client: DesignClient
    prometheus: Prometheus


@contextmanager
def watched_farm(folder: Path) -> Iterator[WatchedFarm]:
    """Runs in a folder of its own while this lasts."""
    with ExitStack() as ending:
        redis = ending.enter_context(LocalRedis(_made(folder / "redis")))
        coordinator = Coordinator(
            folder / "coordinator",
            *("--store", redis.url, "--metrics-listen", "127.0.0.1:0"),
            *("--price-per-cpu-hour", "0.05"),
        )
        ending.callback(coordinator.close)
        coordinator.start()
        targets = {"coordinator": [metrics_address(coordinator.log())]}
        prometheus = ending.enter_context(LocalPrometheus(_made(folder / "prometheus"), targets))
        connection = ending.enter_context(
            Connection(
                settings_of(Given(coordinator=coordinator.address), {}, Given(), file_name="")
            )
        )
        yield WatchedFarm(DesignClient(connection), prometheus)


def metrics_address(log: str) -> str:
    """Where a process serves metrics, by its log."""
    events = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    (address,) = [each["address"] for each in events if each["message"] == "serving metrics"]
    assert isinstance(address, str)
    return address


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
