"""A real coordinator survives a store that is temporarily not writable.

REMY_SOAK=1 makes Redis unreachable for a minute (`make soak`).
"""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2, spec_pb2
from remy_services.client.design_client import DesignClient
from remy_services.jobs.states import RUNNING, SUCCEEDED
from services.tests.cli.service.real_coordinator import Coordinator
from services.tests.coordinator.embedded_design import embedded_design
from services.tests.stores.local_redis import LocalRedis
from tests.service.endless_design import end_soon
from tests.service.watcher import connect
from tests.waiting import wait_until

_ENDLESS = small_joint_spec(steps=1_000_000, steps_per_epoch=10)
#: How long Redis stays silent after the coordinator has noticed.
_SILENT_SECONDS = 60.0 if os.environ.get("REMY_SOAK") else 0.0
#: A maximum file size that leaves room neither for a commit nor for a line of the log.
_FULL_AT_BYTES = 1


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[LocalRedis]:
    (tmp_path / "redis").mkdir()
    with LocalRedis(tmp_path / "redis") as server:
        yield server


@contextmanager
def _running(folder: Path, *flags: str) -> Iterator[tuple[Coordinator, DesignClient]]:
    """Runs a coordinator and yields it with a connected client."""
    coordinator = Coordinator(folder / "coordinator", *flags)
    try:
        coordinator.start()
        with connect(coordinator.address) as connection:
            yield coordinator, DesignClient(connection)
    finally:
        coordinator.close()


@contextmanager
def _silent(redis: LocalRedis) -> Iterator[None]:
    redis.freeze()
    yield
    threading.Event().wait(_SILENT_SECONDS)
    redis.thaw()


@contextmanager
def _out_of_memory(redis: LocalRedis) -> Iterator[None]:
    with redis.admin() as admin:
        admin.config_set("maxmemory", "1mb")
        yield
        admin.config_set("maxmemory", "0")


@contextmanager
def _read_only(redis: LocalRedis) -> Iterator[None]:
    with redis.admin() as admin:
        admin.replicaof("127.0.0.1", "1")
        yield
        admin.replicaof("no", "one")


@contextmanager
def _full_disk(coordinator: Coordinator) -> Iterator[None]:
    before = resource.prlimit(coordinator.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(coordinator.pid, resource.RLIMIT_FSIZE, (_FULL_AT_BYTES, before[1]))
    yield
    resource.prlimit(coordinator.pid, resource.RLIMIT_FSIZE, before)


def _wait_for_job(
    client: DesignClient, job: str, condition: Callable[[job_pb2.Job], bool]
) -> job_pb2.Job:
    wait_until(lambda: condition(client.get(job)))
    return client.get(job)


def _start_job(client: DesignClient) -> str:
    """Submits an endless design and returns its ID when it has made some steps."""
    job = client.submit(messages.SubmitJobRequest(spec=_ENDLESS)).id
    _wait_for_job(client, job, lambda current: current.progress.step > 5)
    return job


def _check_waits_for_store(client: DesignClient, job: str, why: str) -> None:
    waiting = _wait_for_job(client, job, lambda current: current.status_message != "")
    assert waiting.state == RUNNING
    assert waiting.status_message.startswith("waits for the store: ")
    assert why in waiting.status_message


def _check_continues(client: DesignClient, job: str) -> None:
    step = client.get(job).progress.step
    _wait_for_job(
        client,
        job,
        lambda current: current.progress.step > step and not current.status_message,
    )


def _check_result_is_unaffected(client: DesignClient, job: str, folder: Path) -> None:
    end_soon(client, job)
    finished = _wait_for_job(client, job, lambda current: current.state == SUCCEEDED)
    spec = spec_pb2.DesignSpec()
    spec.CopyFrom(_ENDLESS)
    # The design may have made a few more steps than requested.
    spec.stop.steps = finished.progress.step
    table, _ = embedded_design(spec, folder / "embedded")
    file_format = messages.REMY_CC_FORMAT_JSON
    assert client.remycc(job, epoch=None, file_format=file_format).content == table


def test_job_waits_for_redis_and_continues(redis: LocalRedis, tmp_path: Path) -> None:
    with _running(tmp_path, "--store", redis.url) as (_, client):
        job = _start_job(client)
        for outage, why in (
            (_silent, "does not answer"),
            (_out_of_memory, "is out of memory"),
            (_read_only, "is a read-only replica"),
        ):
            with outage(redis):
                _check_waits_for_store(client, job, why)
            _check_continues(client, job)
        _check_result_is_unaffected(client, job, tmp_path)


def test_job_waits_for_a_full_disk_and_continues(tmp_path: Path) -> None:
    with _running(tmp_path) as (coordinator, client):
        job = _start_job(client)
        with _full_disk(coordinator):
            _check_waits_for_store(client, job, "disk full or I/O error")
            wait_until(lambda: not client.server_info().store.available)
            assert "disk full or I/O error" in client.server_info().store.trouble
        _check_continues(client, job)
        _check_result_is_unaffected(client, job, tmp_path)


def test_coordinator_shuts_down_without_its_store(redis: LocalRedis, tmp_path: Path) -> None:
    flags = ("--store", redis.url, "--grace-seconds", "5")
    with _running(tmp_path, *flags) as (coordinator, client):
        job = _start_job(client)
        redis.kill()
        # `stop` checks that the process ends with exit code 0.
        coordinator.stop()
        redis.start()
        coordinator.start()
        recovered = _wait_for_job(client, job, lambda current: current.state == RUNNING)
        assert recovered.progress.recoveries == 1
