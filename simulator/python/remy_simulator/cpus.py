"""The number of CPUs that this process may use."""

from __future__ import annotations

import math
import os
from pathlib import Path

__all__ = [
    "allowed_cpus",
]

_CONTROL_GROUPS = Path("/sys/fs/cgroup")


def allowed_cpus(control_groups: Path = _CONTROL_GROUPS) -> int:
    """Returns the CPUs that the affinity mask and the cgroup quota allow, at least 1."""
    quota = _quota(control_groups)
    affinity = len(os.sched_getaffinity(0))
    return affinity if quota is None else max(1, min(affinity, math.ceil(quota)))


def _quota(control_groups: Path) -> float | None:
    """Returns the CPU time per wall time that the cgroup allows; None without a quota."""
    words = _words(control_groups / "cpu.max") or (
        _words(control_groups / "cpu" / "cpu.cfs_quota_us")
        + _words(control_groups / "cpu" / "cpu.cfs_period_us")
    )
    try:
        quota, period = (int(word) for word in words)
    except ValueError:
        return None
    return quota / period if quota > 0 and period > 0 else None


def _words(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError):
        return []
