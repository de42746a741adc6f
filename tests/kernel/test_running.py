"""Tests `remy-farm kernel run` in network namespaces: use, counters and cleanup."""

from __future__ import annotations

import configparser
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from laboratory.tests.kernel.tables import SCALE_FREE, integers, needs_kernel
from remy_laboratory.kernel.fixed_point import SOURCES
from remy_laboratory.kernel.linux import ebpf_files, write_ebpf
from tests.waiting import wait_until

pytestmark = needs_kernel

_REMY_FARM = Path(sys.executable).with_name("remy-farm")
_SYSCTL = Path("/proc/sys/net/ipv4/tcp_congestion_control")
_AVAILABLE = _SYSCTL.with_name("tcp_available_congestion_control")
_KILLS = 50 if os.environ.get("REMY_SOAK") else 4
# A program that sends over the loopback and prints what ss reports of the connection.
_LOOPBACK = """
import socket, subprocess, threading
listening = socket.create_server(("127.0.0.1", 0))
received = []
def receive():
    with listening.accept()[0] as connection:
        while data := connection.recv(65536):
            received.append(len(data))
thread = threading.Thread(target=receive)
thread.start()
with socket.create_connection(listening.getsockname()) as sending:
    sending.sendall(bytes(3_000_000))
    print(subprocess.run(["ss", "-Htin"], capture_output=True, text=True).stdout)
thread.join()
assert sum(received) == 3_000_000
"""


def _name() -> str:
    # The name contains the process id, because tests may run in parallel.
    return f"remy{os.getpid()}"


@pytest.fixture
def netns() -> Iterator[str]:
    name = f"remy-test-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
    yield name
    subprocess.run(["ip", "netns", "delete", name], check=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    assert write_ebpf(folder, ebpf_files(integers(SCALE_FREE), _name()))
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "REMY_FARM_KERNEL_STATES": str(tmp_path / "states")}


def _call(environment: dict[str, str], *arguments: object) -> str:
    command = [str(_REMY_FARM), "kernel", *map(str, arguments)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@contextmanager
def _running(environment: dict[str, str], *arguments: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [str(_REMY_FARM), "kernel", "run", *map(str, arguments)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert f"{_name()} runs" in process.stderr.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


def _in(netns: str, *arguments: str) -> str:
    command = ["ip", "netns", "exec", netns, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_only_the_namespace_uses_the_algorithm(
    folder: Path, netns: str, environment: dict[str, str], tmp_path: Path
) -> None:
    before = _SYSCTL.read_text()
    before_there = _in(netns, "cat", str(_SYSCTL))
    with _running(environment, folder, "--netns", netns) as process:
        assert _in(netns, "cat", str(_SYSCTL)) == _name()
        assert _SYSCTL.read_text() == before
        output = _in(netns, sys.executable, "-c", _LOOPBACK)
        assert _name() in output
        assert "cwnd:" in output
        running = json.loads(_call(environment, "status", "--json"))["running"]
        assert [each["name"] for each in running] == [_name()]
        assert running[0]["sockets"] >= 2
        assert running[0]["acks"] > 10
        assert sum(running[0]["uses_by_rule"]) > running[0]["acks"] / 2
        process.terminate()
        assert process.wait(30) == 0
    assert _in(netns, "cat", str(_SYSCTL)) == before_there
    assert _name() not in _AVAILABLE.read_text()
    assert list((tmp_path / "states").iterdir()) == []


@contextmanager
def _running_inside(
    environment: dict[str, str], netns: str, command: list[str]
) -> Iterator[subprocess.Popen[str]]:
    """Runs a command in a network namespace, whose default it regards as the machine's."""
    process = subprocess.Popen(
        ["ip", "netns", "exec", netns, *command], env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        assert f"{_name()} runs; new sockets in this machine" in process.stderr.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_default_is_restored_after_the_run(
    number: signal.Signals,
    folder: Path,
    netns: str,
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    outside = _SYSCTL.read_text()
    before = _in(netns, "cat", str(_SYSCTL))
    # A namespace's default must be an algorithm that unprivileged sockets may use.
    run = [str(_REMY_FARM), "kernel", "run", str(folder), "--default", "--for-all"]
    with _running_inside(environment, netns, run) as process:
        assert _in(netns, "cat", str(_SYSCTL)) == _name()
        assert _SYSCTL.read_text() == outside
        process.send_signal(number)
        assert process.wait(30) == (-number if number == signal.SIGKILL else 0)
    if number == signal.SIGKILL:
        undo = ["ip", "netns", "exec", netns, str(_REMY_FARM), "kernel", "status"]
        result = subprocess.run(undo, env=environment, capture_output=True, text=True, check=True)
        assert f"{_name()} had been killed; its changes are undone" in result.stderr
    assert _in(netns, "cat", str(_SYSCTL)) == before
    assert list((tmp_path / "states").iterdir()) == []


def test_default_that_was_changed_meanwhile_is_not_restored(
    folder: Path, netns: str, environment: dict[str, str]
) -> None:
    with _running(environment, folder, "--netns", netns) as process:
        _in(netns, "sh", "-c", f"echo reno > {_SYSCTL}")
        process.terminate()
        assert process.wait(30) == 0
    assert _in(netns, "cat", str(_SYSCTL)) == "reno"


def test_systemd_unit_runs_and_stops_the_algorithm(
    folder: Path, netns: str, environment: dict[str, str]
) -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(SOURCES / "remy-farm-kernel@.service")
    service = unit["Service"]

    def command_of(key: str) -> list[str]:
        installed = service[key].replace("/etc/remy-farm/kernel/%i", str(folder))
        command, *rest = installed.split()
        assert command == "remy-farm"
        return [str(_REMY_FARM), *rest]

    before = _in(netns, "cat", str(_SYSCTL))
    with _running_inside(environment, netns, [*command_of("ExecStart"), "--for-all"]) as process:
        assert _in(netns, "cat", str(_SYSCTL)) == _name()
        process.send_signal(signal.Signals[service["KillSignal"]])
        assert process.wait(30) == 0
    stopped = subprocess.run(
        ["ip", "netns", "exec", netns, *command_of("ExecStopPost")],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "No RemyCC runs" in stopped.stdout
    assert _in(netns, "cat", str(_SYSCTL)) == before


def test_route_uses_the_algorithm(folder: Path, netns: str, environment: dict[str, str]) -> None:
    _in(netns, "ip", "route", "add", "10.1.0.0/16", "dev", "lo")
    before = _in(netns, "ip", "route", "show", "10.1.0.0/16")
    with _running(environment, folder, "--netns", netns, "--route", "10.1.0.0/16") as process:
        assert f"congctl {_name()}" in _in(netns, "ip", "route", "show", "10.1.0.0/16")
        assert _in(netns, "cat", str(_SYSCTL)) != _name()
        process.terminate()
        assert process.wait(30) == 0
    assert _in(netns, "ip", "route", "show", "10.1.0.0/16") == before


def test_socket_can_select_the_algorithm_by_name(folder: Path, environment: dict[str, str]) -> None:
    with _running(environment, folder), socket.socket() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _name().encode())
        selected = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        assert selected.rstrip(b"\0").decode() == _name()
    assert _name() not in _AVAILABLE.read_text()


def test_pinned_algorithm_stays_until_it_is_stopped(
    folder: Path, netns: str, environment: dict[str, str], tmp_path: Path
) -> None:
    pins = tmp_path / "pins"
    pins.mkdir()
    subprocess.run(["mount", "-t", "bpf", "bpf", str(pins)], check=True)
    try:
        before = _in(netns, "cat", str(_SYSCTL))
        _call(environment, "run", folder, "--netns", netns, "--pin", pins / "link")
        assert _name() in _AVAILABLE.read_text()
        assert _in(netns, "cat", str(_SYSCTL)) == _name()
        _call(environment, "stop", _name())
        assert _in(netns, "cat", str(_SYSCTL)) == before
        wait_until(lambda: _name() not in _AVAILABLE.read_text())
    finally:
        subprocess.run(["umount", str(pins)], check=True)


def test_next_start_cleans_up_after_kills_at_random_times(
    folder: Path, netns: str, environment: dict[str, str], tmp_path: Path
) -> None:
    before, before_there = _SYSCTL.read_text(), _in(netns, "cat", str(_SYSCTL))
    start = time.monotonic()
    with _running(environment, folder, "--netns", netns):
        start_seconds = time.monotonic() - start
    _call(environment, "status")
    rng = random.Random(1)
    for _ in range(_KILLS):
        process = subprocess.Popen(
            [str(_REMY_FARM), "kernel", "run", str(folder), "--netns", netns],
            env=environment,
            stderr=subprocess.DEVNULL,
        )
        # The kill comes during or after the start.
        time.sleep(start_seconds * rng.uniform(0.3, 1.5))
        process.send_signal(rng.choice([signal.SIGKILL, signal.SIGTERM]))
        process.wait()
        _call(environment, "status")
        assert _in(netns, "cat", str(_SYSCTL)) == before_there
        assert _SYSCTL.read_text() == before
        wait_until(lambda: _name() not in _AVAILABLE.read_text())
        states = tmp_path / "states"
        assert not states.exists() or list(states.iterdir()) == []


def test_unfinished_record_is_removed_only_if_its_process_has_ended(
    environment: dict[str, str], tmp_path: Path
) -> None:
    states = tmp_path / "states"
    states.mkdir()
    started = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19]
    in_use = states / f".remy.{os.getpid()}.{started}.tmp"
    orphaned = states / f".remy.{os.getpid()}.1.tmp"
    for path in (in_use, orphaned):
        path.write_text("{")
    _call(environment, "status")
    assert list(states.iterdir()) == [in_use]


def test_second_run_with_the_same_name_is_refused(
    folder: Path, environment: dict[str, str]
) -> None:
    with _running(environment, folder):
        second = subprocess.run(
            [str(_REMY_FARM), "kernel", "run", str(folder)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert second.returncode == 2
    assert f"already has an algorithm '{_name()}'" in second.stderr
