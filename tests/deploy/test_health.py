"""What Docker runs in the containers to ask for their health."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.programs import ROOT
from remy_rpc.settings import Address
from remy_workers.telemetry import WorkerMetrics, served
from services.tests.coordinator.running_server import RunningServer, settings_for
from services.tests.stores.local_redis import free_port


def test_a_coordinator_that_serves_is_healthy(tmp_path: Path) -> None:
    address = Address("127.0.0.1", free_port())
    with RunningServer(settings_for(tmp_path, health_listen=address)):
        assert ask("coordinator", REMY_FARM_COORDINATOR_HEALTH_LISTEN=str(address)) == (0, "")


def test_one_that_is_gone_is_not(tmp_path: Path) -> None:
    port = free_port()
    status, said = ask("coordinator", REMY_FARM_COORDINATOR_HEALTH_LISTEN=f"0.0.0.0:{port}")
    assert status == 1
    assert f"port {port}" in said


def test_a_worker_that_answers_is_healthy() -> None:
    port = free_port()
    with served(WorkerMetrics(1), "127.0.0.1", port):
        assert ask("worker", REMY_FARM_WORKER_METRICS_LISTEN=f"0.0.0.0:{port}") == (0, "")
    status, said = ask("worker", REMY_FARM_WORKER_METRICS_LISTEN=f"0.0.0.0:{port}")
    assert status == 1
    assert f"port {port}" in said


def ask(component: str, **environment: str) -> tuple[int, str]:
    """How the question ends, and what it says."""
    done = subprocess.run(
        [sys.executable, ROOT / "deploy" / "health" / f"{component}.py"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr.strip()
