"""Programs end on a signal in the middle of a simulation, and print only their own message."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.worker_farm import REMY_WORKER
from remy_farm.specification import parse_spec
from remy_proto.v1 import design_service_pb2 as messages
from remy_services.client.design_client import DesignClient
from remy_services.jobs.states import CANCELLED, RUNNING
from services.tests.cli.service.real_coordinator import REMY_FARM, Coordinator
from tests.children import killed_with_parent
from tests.service.watcher import connect
from tests.waiting import wait_until

_TIMEOUT_SECONDS = 60.0
# A simulation of this specification takes longer than any test.
_HUGE = """
name: huge
network: {rate_mbps: 10000, rtt_ms: 100, senders: 2, buffer: infinite,
  traffic: {exponential_time: {mean_ms: 5000}, mean_off_ms: 5000}}
objective: {delta: 1}
search: {mode: joint, simulated_seconds: 1000000}
"""


@pytest.fixture
def huge(tmp_path: Path) -> Path:
    path = tmp_path / "huge.yaml"
    path.write_text(_HUGE)
    return path


def _is_simulating(pid: int, cpu_seconds_before: float = 0.0) -> bool:
    """Whether threads other than the main one have used half a second more CPU time than before.

    Starting a program or a simulation takes less.
    """
    return _cpu_seconds_of_threads(pid) - cpu_seconds_before >= 0.5


def _cpu_seconds_of_threads(pid: int) -> float:
    """Returns the CPU seconds of all threads other than the main one."""
    ticks = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        if int(task.name) != pid:
            ticks += int((task / "stat").read_text().rpartition(")")[2].split()[11])
    return ticks / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("threads", [1, 2])
def test_design_ends_in_the_middle_of_a_simulation(
    huge: Path, tmp_path: Path, number: signal.Signals, threads: int
) -> None:
    process = subprocess.Popen(
        killed_with_parent(
            *(REMY_FARM, "design", huge, "--out", tmp_path / "out"),
            *("--threads", str(threads), "--quiet"),
        ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: process.poll() is not None or _is_simulating(process.pid))
        process.send_signal(number)
        _, stderr = process.communicate(timeout=_TIMEOUT_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 130
    first, *rest = stderr.splitlines()
    assert first.startswith("interrupted")
    assert len(rest) == 1, stderr


@pytest.fixture
def coordinator(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Coordinator]:
    coordinator = Coordinator(tmp_path / "coordinator", "--evaluator", request.param)
    coordinator.start()
    yield coordinator
    coordinator.close()


@pytest.fixture
def client(coordinator: Coordinator) -> Iterator[DesignClient]:
    with connect(coordinator.address) as connection:
        yield DesignClient(connection)


def _submit_huge(client: DesignClient) -> str:
    return client.submit(messages.SubmitJobRequest(spec=parse_spec(_HUGE))).id


@pytest.mark.parametrize("coordinator", ["local"], indirect=True)
def test_coordinator_answers_cancels_and_ends_in_the_middle_of_a_simulation(
    coordinator: Coordinator, client: DesignClient
) -> None:
    job = _submit_huge(client)
    wait_until(lambda: _is_simulating(coordinator.pid), "a simulation")
    assert client.get(job).state == RUNNING
    assert client.server_info().running_jobs == 1
    client.cancel(job)
    wait_until(lambda: client.get(job).state == CANCELLED, seconds=_TIMEOUT_SECONDS)

    _submit_huge(client)
    before = _cpu_seconds_of_threads(coordinator.pid)
    wait_until(lambda: _is_simulating(coordinator.pid, before), "another simulation")
    coordinator.stop()
    # nanobind reports objects of the simulator that leak at the process's end.
    assert "nanobind" not in coordinator.log()


@pytest.mark.parametrize("coordinator", ["workers"], indirect=True)
def test_worker_ends_in_the_middle_of_a_simulation(
    coordinator: Coordinator, client: DesignClient
) -> None:
    job = _submit_huge(client)
    worker = subprocess.Popen(
        killed_with_parent(
            REMY_WORKER, f"--coordinator={coordinator.address}", "--threads=1", "--log-level=error"
        ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: worker.poll() is not None or _is_simulating(worker.pid), "a simulation")
        worker.terminate()
        _, stderr = worker.communicate(timeout=_TIMEOUT_SECONDS)
    finally:
        worker.kill()
    assert worker.returncode == 0
    assert stderr == ""
    assert client.get(job).state == RUNNING
