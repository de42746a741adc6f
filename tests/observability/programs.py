"""Programs of the Prometheus package."""

from __future__ import annotations

import shutil


def _found(name: str) -> str:
    path = shutil.which(name)
    assert path, f"{name} is missing: run `scripts/bootstrap test`"
    return path


def promtool() -> str:
    """The tool that checks and tests rules."""
    return _found("promtool")


def prometheus() -> str:
    """The server."""
    return _found("prometheus")
