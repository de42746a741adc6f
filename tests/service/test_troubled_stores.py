"""Stores that cannot be written to for a while, behind a real coordinator.

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
#: How long Redis does not answer after everybody has noticed.
_SILENT_SECONDS = 60.0 if os.environ.get("REMY_SOAK") else 0.0
#: Neither a commit nor a line of the log fits into a file of this size.
_FULL_AT_BYTES = 1


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[LocalRedis]:
    (tmp_path / "redis").mkdir()
    with LocalRedis(tmp_path / "redis") as server:
        yield server


@contextmanager
def _running(folder: Path, *flags: str) -> Iterator[tuple[Coordinator, DesignClient]]:
    """A coordinator, and somebody who calls it."""
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


def _until(client: DesignClient, job: str, wanted: Callable[[job_pb2.Job], bool]) -> job_pb2.Job:
    wait_until(lambda: wanted(client.get(job)))
    return client.get(job)


def _begun(client: DesignClient) -> str:
    """A job under way."""
    job = client.submit(messages.SubmitJobRequest(spec=_ENDLESS)).id
    _until(client, job, lambda shown: shown.progress.step > 5)
    return job


def _waits_and_says_why(client: DesignClient, job: str, why: str) -> None:
    waiting = _until(client, job, lambda shown: shown.status_message != "")
    assert waiting.state == RUNNING
    assert waiting.status_message.startswith("waits for the store: ")
    assert why in waiting.status_message


def _goes_on(client: DesignClient, job: str) -> None:
    step = client.get(job).progress.step
    _until(client, job, lambda shown: shown.progress.step > step and not shown.status_message)


def _ends_as_if_nothing_had_happened(client: DesignClient, job: str, folder: Path) -> None:
    end_soon(client, job)
    finished = _until(client, job, lambda shown: shown.state == SUCCEEDED)
    spec = spec_pb2.DesignSpec()
    spec.CopyFrom(_ENDLESS)
    # The end may have come a little later than it was asked for.
    spec.stop.steps = finished.progress.step
    table, _ = embedded_design(spec, folder / "embedded")
    file_format = messages.REMY_CC_FORMAT_JSON
    assert client.remycc(job, epoch=None, file_format=file_format).content == table


def test_whatever_is_wrong_with_redis_passes(redis: LocalRedis, tmp_path: Path) -> None:
    with _running(tmp_path, "--store", redis.url) as (_, client):
        job = _begun(client)
        for trouble, why in (
            (_silent, "does not answer"),
            (_out_of_memory, "is out of memory"),
            (_read_only, "is a read-only replica"),
        ):
            with trouble(redis):
                _waits_and_says_why(client, job, why)
            _goes_on(client, job)
        _ends_as_if_nothing_had_happened(client, job, tmp_path)


def test_a_full_disk_passes(tmp_path: Path) -> None:
    with _running(tmp_path) as (coordinator, client):
        job = _begun(client)
        with _full_disk(coordinator):
            _waits_and_says_why(client, job, "its disk is full or fails")
            wait_until(lambda: not client.server_info().store.available)
            assert "its disk is full or fails" in client.server_info().store.trouble
        _goes_on(client, job)
        _ends_as_if_nothing_had_happened(client, job, tmp_path)


def test_a_coordinator_may_end_without_its_store(redis: LocalRedis, tmp_path: Path) -> None:
    flags = ("--store", redis.url, "--grace-seconds", "5")
    with _running(tmp_path, *flags) as (coordinator, client):
        job = _begun(client)
        redis.kill()
        # Within its grace period, and well.
        coordinator.stop()
        redis.start()
        coordinator.start()
        recovered = _until(client, job, lambda shown: shown.state == RUNNING)
        assert recovered.progress.recoveries == 1
