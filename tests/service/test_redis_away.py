"""A Redis that does not answer, behind a real coordinator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from remy_farm.v1 import design_service_pb2 as messages
from remy_farm.v1 import job_pb2, spec_pb2
from remy_services.client.design_client import DesignClient
from remy_services.jobs.states import RUNNING, SUCCEEDED
from services.tests.cli.service.real_coordinator import Coordinator
from services.tests.coordinator.embedded_design import embedded_design
from services.tests.coordinator.running_server import DEADLINE_SECONDS
from services.tests.designer.small_joint_spec import small_joint_spec
from services.tests.stores.local_redis import LocalRedis
from tests.service.watcher import connect

_ENDLESS = small_joint_spec(steps=1_000_000, steps_per_epoch=10)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[LocalRedis]:
    (tmp_path / "redis").mkdir()
    with LocalRedis(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def coordinator(tmp_path: Path, redis: LocalRedis) -> Iterator[Coordinator]:
    """On that Redis."""
    flags = ("--store", redis.url, "--grace-seconds", "5")
    coordinator = Coordinator(tmp_path / "coordinator", *flags)
    coordinator.start()
    yield coordinator
    coordinator.close()


@pytest.fixture
def client(coordinator: Coordinator) -> Iterator[DesignClient]:
    """Calls the coordinator."""
    with connect(coordinator.address) as connection:
        yield DesignClient(connection)


def _until(client: DesignClient, job: str, wanted: Callable[[job_pb2.Job], bool]) -> job_pb2.Job:
    _wait(lambda: wanted(client.get(job)))
    return client.get(job)


def _wait(wanted: Callable[[], bool]) -> None:
    ends = time.monotonic() + DEADLINE_SECONDS
    while not wanted():
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_the_job_waits_says_why_and_goes_on(
    client: DesignClient, redis: LocalRedis, tmp_path: Path
) -> None:
    job = client.submit(messages.SubmitJobRequest(spec=_ENDLESS)).id
    _until(client, job, lambda shown: shown.progress.step > 5)
    redis.freeze()
    waiting = _until(client, job, lambda shown: shown.status_message != "")
    assert waiting.state == RUNNING
    assert waiting.status_message.startswith("waits for the store: ")
    _wait(lambda: not client.server_info().store.available)
    redis.thaw()
    going_on = _until(client, job, lambda shown: shown.progress.step > waiting.progress.step)
    stop = spec_pb2.Stop(steps=going_on.progress.step + 50)
    client.extend(job, stop=stop, joint_steps=None)
    finished = _until(client, job, lambda shown: shown.state == SUCCEEDED)
    assert finished.status_message == ""

    spec = spec_pb2.DesignSpec()
    spec.CopyFrom(_ENDLESS)
    # The end may have come a little later than it was asked for.
    spec.stop.steps = finished.progress.step
    table, _ = embedded_design(spec, tmp_path / "embedded")
    file_format = messages.REMY_CC_FORMAT_JSON
    assert client.remycc(job, epoch=None, file_format=file_format).content == table


def test_a_coordinator_may_end_without_its_store(
    client: DesignClient, coordinator: Coordinator, redis: LocalRedis
) -> None:
    job = client.submit(messages.SubmitJobRequest(spec=_ENDLESS)).id
    _until(client, job, lambda shown: shown.progress.step > 5)
    redis.kill()
    # Within its grace period, and well.
    coordinator.stop()
    redis.start()
    coordinator.start()
    recovered = _until(client, job, lambda shown: shown.state == RUNNING)
    assert recovered.progress.recoveries == 1
