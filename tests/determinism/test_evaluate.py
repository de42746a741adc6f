"""`evaluate` gives the same results, bit for bit, with any number of threads and on any CPU."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cpu_features import environment_with_features_off, system_functions_digest
from benchmarks.programs import REMY_FARM, run_json
from benchmarks.tables import write_eight_rules

# Covers all kinds of distributions, finite buffers and random loss.
_SPEC = """\
name: mixed
network:
  rate_mbps: {log_uniform: [2, 200]}
  rtt_ms: {uniform: [10, 200]}
  senders: {integer_uniform: [1, 8]}
  buffer: {packets: [20, 200]}
  loss_probability: [0, 0.01]
  traffic:
    TRAFFIC
    mean_off_ms: 500
objective: {alpha: 1.5, beta: 0.7, delta: 0.3}
stop: {epochs: 1}
"""
_TRAFFICS = {
    "by time": "exponential_time: {mean_ms: 1000}",
    "by bytes": "exponential_bytes: {mean_bytes: 200000}",
    "flow lengths": "flow_lengths: {maximum_bytes: 1e7}",
}


@pytest.fixture(params=_TRAFFICS.values(), ids=list(_TRAFFICS))
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_text(_SPEC.replace("TRAFFIC", request.param))
    return path


def evaluate(
    spec: Path, *, threads: int, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Runs `evaluate` and returns its JSON output without the CPU time."""
    scores = run_json(
        REMY_FARM,
        "evaluate",
        f"--remycc={write_eight_rules(spec.parent)}",
        f"--spec={spec}",
        "--specimens=20",
        "--seed=3",
        f"--threads={threads}",
        environment=environment,
    )
    del scores["cpu_seconds"]
    return scores


def test_results_depend_neither_on_threads_nor_on_cpu_features(spec: Path) -> None:
    expected = evaluate(spec, threads=1)
    assert expected["packets_received"] > 100_000
    assert evaluate(spec, threads=2) == expected
    assert evaluate(spec, threads=7) == expected
    assert evaluate(spec, threads=2, environment=environment_with_features_off()) == expected


def has_fused_multiply_add() -> bool:
    cpu_info = Path("/proc/cpuinfo")
    return cpu_info.exists() and " fma " in cpu_info.read_text()


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not has_fused_multiply_add(),
    reason="the C library has no variants of its functions for this CPU",
)
def test_hiding_cpu_features_changes_the_c_library() -> None:
    """This is the control of the tests above: hiding features takes effect."""
    assert system_functions_digest(dict(os.environ)) != system_functions_digest(
        environment_with_features_off()
    )
