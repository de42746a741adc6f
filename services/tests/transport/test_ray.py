"""Tests RayFleet without a cluster: the driver process and mutual TLS."""

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
    consecutive_failures,
)

# Writes the first line of stdin to a file, and exits when stdin closes.
_DRIVER = "import sys; open(sys.argv[1], 'wb').write(sys.stdin.buffer.readline()); sys.stdin.read()"


def test_restart_backoff_grows_to_a_bound() -> None:
    failures, waits = 0, []
    for _ in range(10):
        failures = consecutive_failures(failures, 1.0, had_workers=False)
        waits.append(RESTARTS.wait_seconds(failures, jitter=1.0))
    assert waits[:4] == [0.5, 1.0, 2.0, 4.0]
    assert waits == sorted(waits)
    assert waits[-1] == waits[-2] == 30.0


def test_backoff_restarts_after_a_useful_driver() -> None:
    assert consecutive_failures(8, 1.0, had_workers=True) == 1
    assert consecutive_failures(1, 1.0, had_workers=False) == 2
    assert consecutive_failures(2, 100.0, had_workers=False) == 1


def test_missing_ray_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RayUnavailable, match=r"install remy-farm-worker with its extra 'ray'"):
        RayFleet()


async def _start_driver(fleet: RayFleet, path: Path) -> dict[str, Any]:
    """Starts the fleet and returns the settings that its driver received."""
    fleet.begin()
    while not path.exists() or not path.read_bytes().endswith(b"\n"):
        await asyncio.sleep(0.02)
    assert fleet.driver_pid is not None
    received: dict[str, Any] = json.loads(path.read_bytes())
    return received


async def _call(port: int, credentials: grpc.ChannelCredentials) -> grpc.StatusCode:
    """Opens a stream whose first message is not Hello, and returns its status."""
    name = (("grpc.ssl_target_name_override", "remy-farm-ray"),)
    async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, name) as channel:
        # The generated stub has no type hints.
        make_stub: Any = worker_service_pb2_grpc.WorkerServiceStub
        call = make_stub(channel).Work(iter([worker_service_pb2.WorkRequest()]))
        code: grpc.StatusCode = await call.code()
        return code


@pytest.fixture
def driver_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Replaces Ray's driver by one that writes its settings to this file. Ray is not needed."""
    path = tmp_path / "received"
    monkeypatch.setattr(ray, "_DRIVER", (sys.executable, "-c", _DRIVER, str(path)))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    return path


def test_the_driver_gets_all_settings_and_only_its_certificate_is_accepted(
    driver_file: Path,
) -> None:

    async def run() -> None:
        fleet = RayFleet(RaySettings("10.0.0.1:6379", 4, 16, "evaluation", 30.0, "debug"))
        received = await _start_driver(fleet, driver_file)
        port, key, certificate = (received.pop(name) for name in ("port", "key", "certificate"))
        assert received == {
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
        without_client_certificate = grpc.ssl_channel_credentials(root)
        assert await _call(port, without_client_certificate) == grpc.StatusCode.UNAVAILABLE
        await fleet.close()
        assert fleet.driver_pid is None

    asyncio.run(run())


def test_ray_listen_sets_the_port_and_fails_if_taken(
    driver_file: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = Address("127.0.0.1", free.getsockname()[1])

    async def run() -> None:
        fleet = RayFleet(RaySettings(listen=address))
        assert (await _start_driver(fleet, driver_file))["port"] == address.port
        with pytest.raises(SettingsError, match=f"--ray-listen: cannot listen on {address}"):
            RayFleet(RaySettings(listen=address)).begin()
        await fleet.close()

    asyncio.run(run())
