"""Finds the programs of the Prometheus package, or skips the test."""

from __future__ import annotations

import shutil


def _found(name: str) -> str:
    path = shutil.which(name)
    assert path, f"{name} is missing: run `scripts/bootstrap test`"
    return path


def promtool() -> str:
    """Returns the path of promtool, which checks and tests rules."""
    return _found("promtool")


def prometheus() -> str:
    """Returns the path of the Prometheus server."""
    return _found("prometheus")
