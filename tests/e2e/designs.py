"""Specifications for the end-to-end tests, and their expected results."""

from __future__ import annotations

import hashlib
import subprocess
from functools import cache
from pathlib import Path

from tests.e2e.farm import CLI

_NETWORK = """
network:
  rate_mbps: {uniform: [10, 20]}
  rtt_ms: 150
  senders: {integer_uniform: [1, 2]}
  traffic:
    exponential_time: {mean_ms: 1000}
    mean_off_ms: 1000
"""


def write_spec(
    folder: Path, *, steps: int, seed: int = 1, specimens: int = 16, workers: str = "{}"
) -> Path:
    """Writes a joint design's specification; a step of 16 specimens takes some 0.1 CPU-seconds."""
    path = folder / f"design-{steps}-{seed}.yaml"
    search = f"{{seed: {seed}, specimens: {specimens}, joint: {{steps: {steps}}}}}"
    text = f"name: e2e\n{_NETWORK}search: {search}\nworkers: {workers}\n"
    path.write_text(text, encoding="utf-8")
    return path


def digest_of(remycc: bytes) -> str:
    """Returns a short digest of a RemyCC for the report."""
    return f"sha256 {hashlib.sha256(remycc).hexdigest()[:16]}"


@cache
def embedded(spec: Path) -> bytes:
    """Runs the design in one local process and returns its RemyCC."""
    out = spec.with_suffix(".out")
    done = subprocess.run(
        [*CLI, "design", str(spec), "--out", str(out), "--quiet"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return (out / "remycc.json").read_bytes()
