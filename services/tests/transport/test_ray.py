"""A Ray evaluator without a cluster: its driver's process, and who may call."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import socket
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest

from remy_proto.v1 import worker_service_pb2, worker_service_pb2_grpc
from remy_rpc.settings import Address, SettingsError
from remy_services.transport import ray
from remy_services.transport.ray import (
    RESTARTS,
    RayFleet,
    RaySettings,
    RayUnavailable,
    failures_in_a_row,
)

# Keeps what it is told, and ends with its standard input.
_DRIVER = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.readline()); sys.stdin.read()"


def test_failure_after_failure_is_waited_longer_for_up_to_a_bound() -> None:
    failures, waits = 0, []
    for _ in range(10):
        failures = failures_in_a_row(failures, 1.0, had_workers=False)
        waits.append(RESTARTS.wait_seconds(failures, jitter=1.0))
    assert waits[:4] == [0.5, 1.0, 2.0, 4.0]
    assert waits == sorted(waits)
    assert waits[-1] == waits[-2] == 30.0


def test_a_driver_that_was_of_use_is_started_again_at_once() -> None:
    assert failures_in_a_row(8, 1.0, had_workers=True) == 1
    assert failures_in_a_row(1, 1.0, had_workers=False) == 2
    assert failures_in_a_row(2, 100.0, had_workers=False) == 1


def test_without_ray_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RayUnavailable, match=r"needs remy-farm-worker with its extra 'ray'"):
        RayFleet()


async def _told(fleet: RayFleet, path: Path) -> dict[str, Any]:
    """What the driver has been told once it runs."""
    fleet.begin()
    while not path.exists() or not path.read_bytes().endswith(b"\n"):
        await asyncio.sleep(0.02)
    assert fleet.driver_pid is not None
    told: dict[str, Any] = json.loads(path.read_bytes())
    return told


async def _call(port: int, credentials: grpc.ChannelCredentials) -> grpc.StatusCode:
    """How a stream ends that begins with what is no Hello."""
    name = (("grpc.ssl_target_name_override", "remy-farm-ray"),)
    async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, name) as channel:
        # What is generated has no types.
        make_stub: Any = worker_service_pb2_grpc.WorkerServiceStub
        call = make_stub(channel).Work(iter([worker_service_pb2.WorkRequest()]))
        code: grpc.StatusCode = await call.code()
        return code


@pytest.fixture
def driver_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where a driver writes what it is told, in place of Ray's, which need not be installed."""
    path = tmp_path / "told"
    monkeypatch.setattr(ray, "_DRIVER", (sys.executable, "-c", _DRIVER, str(path)))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    return path


def test_the_driver_is_told_everything_and_only_its_actors_may_call(
    driver_file: Path,
) -> None:

    async def run() -> None:
        fleet = RayFleet(RaySettings("10.0.0.1:6379", 4, 16, "evaluation", 30.0, "debug"))
        told = await _told(fleet, driver_file)
        port, key, certificate = (told.pop(name) for name in ("port", "key", "certificate"))
        assert told == {
            "address": "10.0.0.1:6379",
            "threads_per_actor": 4,
            "actors": 16,
            "resource": "evaluation",
            "patience_seconds": 30.0,
            "log_level": "debug",
            "server_name": "remy-farm-ray",
        }
        root = certificate.encode()
        actor = grpc.ssl_channel_credentials(root, key.encode(), root)
        assert await _call(port, actor) == grpc.StatusCode.INVALID_ARGUMENT
        stranger = grpc.ssl_channel_credentials(root)
        assert await _call(port, stranger) == grpc.StatusCode.UNAVAILABLE
        await fleet.close()
        assert fleet.driver_pid is None

    asyncio.run(run())


def test_actors_call_where_they_are_told_to_or_the_coordinator_does_not_start(
    driver_file: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = Address("127.0.0.1", free.getsockname()[1])

    async def run() -> None:
        fleet = RayFleet(RaySettings(listen=address))
        assert (await _told(fleet, driver_file))["port"] == address.port
        with pytest.raises(SettingsError, match=f"--ray-listen: cannot listen on {address}"):
            RayFleet(RaySettings(listen=address)).begin()
        await fleet.close()

    asyncio.run(run())
