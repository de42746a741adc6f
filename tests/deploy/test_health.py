"""Health checks that Docker runs in the containers."""

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


def test_serving_coordinator_is_healthy(tmp_path: Path) -> None:
    address = Address("127.0.0.1", free_port())
    with RunningServer(settings_for(tmp_path, health_listen=address)):
        variable = {"REMY_FARM_COORDINATOR_HEALTH_LISTEN": str(address)}
        assert check_health("coordinator", **variable) == (0, "")


def test_absent_coordinator_is_unhealthy(tmp_path: Path) -> None:
    port = free_port()
    status, stderr = check_health(
        "coordinator", REMY_FARM_COORDINATOR_HEALTH_LISTEN=f"0.0.0.0:{port}"
    )
    assert status == 1
    assert f"port {port}" in stderr


def test_worker_is_healthy_while_it_serves_metrics() -> None:
    port = free_port()
    variable = {"REMY_FARM_WORKER_METRICS_LISTEN": f"0.0.0.0:{port}"}
    with served(WorkerMetrics(1), "127.0.0.1", port):
        assert check_health("worker", **variable) == (0, "")
    status, stderr = check_health("worker", **variable)
    assert status == 1
    assert f"port {port}" in stderr


def check_health(component: str, **environment: str) -> tuple[int, str]:
    """Runs a health check; returns its exit code and its error output."""
    done = subprocess.run(
        [sys.executable, ROOT / "deploy" / "health" / f"{component}.py"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr.strip()
