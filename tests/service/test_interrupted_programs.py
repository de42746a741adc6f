"""Whatever a program is doing, it ends when told to and says nothing but its own sentence."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from services.tests.cli.service.real_coordinator import REMY_FARM
from tests.waiting import wait_until

_DEADLINE_SECONDS = 60.0
# Simulations of this are longer than any test.
_HUGE = """
name: huge
network: {link_rate_mbps: 10000, rtt_ms: 100, senders: 2, buffer: infinite}
traffic: {exponential_time: {mean_ms: 5000}, mean_off_ms: 5000}
objective: {delta: 1}
search: {mode: joint, simulated_seconds: 1000000}
"""


@pytest.fixture
def huge(tmp_path: Path) -> Path:
    path = tmp_path / "huge.yaml"
    path.write_text(_HUGE)
    return path


def _is_simulating(pid: int) -> bool:
    """Whether a thread other than the main one has used CPU time for as long as no start takes."""
    ticks = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        if int(task.name) != pid:
            ticks += int((task / "stat").read_text().rpartition(")")[2].split()[11])
    return ticks / os.sysconf("SC_CLK_TCK") >= 0.5


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_design_ends_in_the_middle_of_a_simulation(
    huge: Path, tmp_path: Path, number: signal.Signals, threads: int
) -> None:
    process = subprocess.Popen(
        [
            *(REMY_FARM, "design", huge, "--out", tmp_path / "out"),
            *("--threads", str(threads), "--quiet"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: process.poll() is not None or _is_simulating(process.pid))
        process.send_signal(number)
        _, said = process.communicate(timeout=_DEADLINE_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 130
    first, *rest = said.splitlines()
    assert first.startswith("interrupted")
    assert len(rest) == 1, said
