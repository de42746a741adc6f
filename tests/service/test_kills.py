"""A coordinator and its Redis, killed again and again while a design is under way.

REMY_SOAK=1 makes it ten times as many kills (`make soak`).
"""

from __future__ import annotations

import os
import random
import threading
from contextlib import closing
from pathlib import Path

from remy_farm.v1 import design_service_pb2 as messages
from remy_farm.v1 import job_pb2, spec_pb2
from remy_services.client.design_client import DesignClient
from remy_services.jobs.states import SUCCEEDED
from remy_services.stores import RedisStore
from remy_services.stores.redis.address import parse_address
from services.tests.cli.service.real_coordinator import Coordinator
from services.tests.coordinator.embedded_design import embedded_design, without_clocks
from services.tests.designer.small_joint_spec import small_joint_spec
from services.tests.stores.local_redis import LocalRedis
from tests.service.watcher import Watcher, connect

_KILLS = 300 if os.environ.get("REMY_SOAK") else 30
#: One of so many kills is of the coordinator, which takes its time to start; the others, of Redis.
_KILLS_PER_COORDINATOR = 3
_FEWEST_STEPS = 50
_SEED = 20_251_121
#: Long enough to be killed in the middle of a step, and in what follows it.
_LONGEST_DELAY_SECONDS = 0.15
#: A schedule that is longer than any machine gets.
_ENDLESS = small_joint_spec(steps=1_000_000, steps_per_epoch=10, simulated_seconds=10)


def _ending_after(steps: int) -> spec_pb2.DesignSpec:
    """The same search, stopped."""
    spec = spec_pb2.DesignSpec()
    spec.CopyFrom(_ENDLESS)
    spec.stop.steps = steps
    return spec


def _kill_one(number: int, coordinator: Coordinator, redis: LocalRedis) -> None:
    if number % _KILLS_PER_COORDINATOR == 0:
        coordinator.kill()
        coordinator.start()
    else:
        redis.kill()
        redis.start()


def _check_history(
    history: list[job_pb2.JobEvent], expected: list[object], seen: list[job_pb2.JobEvent]
) -> None:
    """No gap, no repeat, nothing that was shown is missing, and the embedded design's progress."""
    assert [event.revision for event in history] == list(range(1, len(history) + 1))
    assert seen == history
    progress = [event.progress for event in history if event.HasField("progress")]
    assert [without_clocks(event) for event in progress] == expected


def test_no_kill_leaves_a_trace_in_the_result(tmp_path: Path) -> None:
    chance = random.Random(_SEED)
    (tmp_path / "redis").mkdir()
    with LocalRedis(tmp_path / "redis") as redis:
        flags = ("--store", redis.url, "--checkpoint-seconds", "0.02")
        coordinator = Coordinator(tmp_path / "coordinator", *flags)
        try:
            coordinator.start()
            with connect(coordinator.address) as connection:
                job = DesignClient(connection).submit(messages.SubmitJobRequest(spec=_ENDLESS)).id
            with Watcher(coordinator.address, job) as watcher:
                for number in range(_KILLS):
                    # Every kill finds the design further than the one before.
                    watcher.wait_for_step(watcher.step + 1)
                    threading.Event().wait(chance.uniform(0, _LONGEST_DELAY_SECONDS))
                    _kill_one(number, coordinator, redis)
                least = max(watcher.step + 5, _FEWEST_STEPS)
                with connect(coordinator.address) as connection:
                    client = DesignClient(connection)
                    client.extend(job, stop=spec_pb2.Stop(steps=least), joint_steps=None)
            finished, table = _result(coordinator.address, job)
            coordinator.stop()
        finally:
            coordinator.close()
        history = _history(redis, job)
    # The end may have come a little later than it was asked for.
    steps = finished.progress.step
    assert steps >= _FEWEST_STEPS
    assert finished.state == SUCCEEDED
    # A quick machine may have made more steps than these before it was told.
    steps = finished.progress.step
    assert steps >= least
    expected_table, events = embedded_design(_ending_after(steps), tmp_path / "embedded")
    assert finished.progress.recoveries > 0
    assert table == expected_table
    _check_history(history, list(events), watcher.events)


def _result(address: str, job: str) -> tuple[job_pb2.Job, bytes]:
    with connect(address) as connection:
        client = DesignClient(connection)
        file_format = messages.REMY_CC_FORMAT_JSON
        return client.get(job), client.remycc(job, epoch=None, file_format=file_format).content


def _history(redis: LocalRedis, job: str) -> list[job_pb2.JobEvent]:
    """As the store has it."""
    with closing(RedisStore(parse_address(redis.url))) as store:
        events = store.events(job, limit=1_000_000)
    return [job_pb2.JobEvent.FromString(data) for _, data in events]
