"""A coordinator process exports metrics, logs and profiles, and leaks no secret."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from remy_proto.v1 import design_service_pb2 as messages
from remy_services.client.connection import Connection
from remy_services.client.design_client import DesignClient
from remy_services.client.settings import SettingsSource, combine_settings
from services.tests.cli.conftest import SMALL_SPEC
from services.tests.cli.service.real_coordinator import REMY_FARM, Coordinator
from tests.observability.event_log import events, metrics_addresses
from tests.waiting import wait_until

Start = Callable[..., Coordinator]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Returns a function that starts coordinators, which end with the test."""
    started = []

    def start_one(name: str, *flags: str) -> Coordinator:
        coordinator = Coordinator(tmp_path / name, *flags)
        started.append(coordinator)
        coordinator.start()
        return coordinator

    yield start_one
    for coordinator in started:
        coordinator.close()


def test_signal_writes_a_profile(start: Start, tmp_path: Path) -> None:
    flags = ("--profile-dir", str(tmp_path), "--profile-seconds", "1")
    coordinator = start("one", *flags)
    settings = combine_settings(
        SettingsSource(coordinator=coordinator.address), {}, SettingsSource(), file_name=""
    )
    with Connection(settings) as connection:
        endless = SMALL_SPEC.replace("epochs: 2", "epochs: 1000000")
        DesignClient(connection).submit(messages.SubmitJobRequest(spec_text=endless))
    os.kill(coordinator.pid, signal.SIGUSR2)
    wait_until(lambda: bool(list(tmp_path.glob("profile-*.txt"))))
    (path,) = tmp_path.glob("profile-*.txt")
    text = path.read_text()
    assert "Time by phase of steps during" in text
    for phase in ("simulation", "transfer", "waiting", "store", "search"):
        assert f"  {phase} " in text
    assert "job_run.py" in text
    wait_until(lambda: any(each.get("path") == str(path) for each in events(coordinator.log())))
    coordinator.stop()


def test_metrics_are_not_served_by_default(start: Start) -> None:
    assert metrics_addresses(start("one").log()) == []


def test_occupied_port_is_reported_in_one_sentence(start: Start) -> None:
    (address,) = metrics_addresses(start("one", "--metrics-listen", "127.0.0.1:0").log())
    with pytest.raises(AssertionError, match=f"cannot serve metrics on {address}: the port"):
        start("two", "--metrics-listen", address)


def test_password_in_a_store_url_is_not_logged(tmp_path: Path) -> None:
    secret = "a-password-that-nobody-should-see"
    log = tmp_path / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [
                *(REMY_FARM, "coordinator", "--listen", "127.0.0.1:0"),
                *("--store", f"redis://user:{secret}@127.0.0.1:1/0"),
            ],
            stdout=stream,
            stderr=stream,
        )
    try:
        wait_until(lambda: process.poll() is not None)
    finally:
        process.kill()
        process.wait()
    assert "password" in log.read_text()
    assert secret not in log.read_text()


def test_scrape_has_all_job_states_and_log_lines_are_events(start: Start) -> None:
    coordinator = start("one", "--metrics-listen", "127.0.0.1:0")
    (address,) = metrics_addresses(coordinator.log())
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as response:
        text = response.read().decode()
    assert 'remy_farm_jobs{state="RUNNING"} 0.0' in text
    for line in coordinator.log().splitlines():
        json.loads(line)
