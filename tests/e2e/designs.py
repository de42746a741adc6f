"""Designs for the end-to-end tests, and what they must come to."""

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
    """A joint search of so many steps; one of 16 specimens takes about a tenth of a CPU-second."""
    path = folder / f"design-{steps}-{seed}.yaml"
    search = f"{{seed: {seed}, specimens: {specimens}, joint: {{steps: {steps}}}}}"
    text = f"name: e2e\n{_NETWORK}search: {search}\nworkers: {workers}\n"
    path.write_text(text, encoding="utf-8")
    return path


def digest_of(remycc: bytes) -> str:
    """A RemyCC's bytes, for people to compare."""
    return f"sha256 {hashlib.sha256(remycc).hexdigest()[:16]}"


@cache
def embedded(spec: Path) -> bytes:
    """The RemyCC that the same specification gives in one process here, however long it takes."""
    out = spec.with_suffix(".out")
    done = subprocess.run(
        [*CLI, "design", str(spec), "--out", str(out), "--quiet"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return (out / "remycc.json").read_bytes()
