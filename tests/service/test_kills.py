"""A coordinator and its Redis are killed repeatedly while a design runs.

REMY_SOAK=1 makes ten times as many kills (`make soak`).
"""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path

from remy_services.client.design_client import DesignClient
from services.tests.cli.service.real_coordinator import Coordinator
from services.tests.stores.local_redis import LocalRedis
from tests.service.endless_design import (
    check_unaffected,
    end_soon,
    history,
    result,
    submit_endless,
)
from tests.service.watcher import Watcher, connect

_KILLS = 300 if os.environ.get("REMY_SOAK") else 30
#: One in this many kills is of the coordinator, which starts slowly; the others are of Redis.
_KILLS_PER_COORDINATOR_KILL = 3
_SEED = 20_251_121
#: Long enough for kills in the middle of a step and after it.
_MAX_DELAY_SECONDS = 0.15


def _kill_one(number: int, coordinator: Coordinator, redis: LocalRedis) -> None:
    if number % _KILLS_PER_COORDINATOR_KILL == 0:
        coordinator.kill()
        coordinator.start()
    else:
        redis.kill()
        redis.start()


def test_kills_do_not_change_the_result(tmp_path: Path) -> None:
    rng = random.Random(_SEED)
    (tmp_path / "redis").mkdir()
    with LocalRedis(tmp_path / "redis") as redis:
        flags = ("--store", redis.url, "--checkpoint-seconds", "0.02")
        coordinator = Coordinator(tmp_path / "coordinator", *flags)
        try:
            coordinator.start()
            job = submit_endless(coordinator.address)
            with Watcher(coordinator.address, job) as watcher:
                for number in range(_KILLS):
                    # The design makes at least one step between two kills.
                    watcher.wait_for_step(watcher.step + 1)
                    threading.Event().wait(rng.uniform(0, _MAX_DELAY_SECONDS))
                    _kill_one(number, coordinator, redis)
                with connect(coordinator.address) as connection:
                    end_soon(DesignClient(connection), job)
            finished, table = result(coordinator.address, job)
            coordinator.stop()
        finally:
            coordinator.close()
        stored = history(redis, job)
    assert finished.progress.recoveries > 0
    check_unaffected(finished, table, stored, watcher.events, tmp_path / "embedded")
