"""What processes say in their logs."""

from __future__ import annotations

import json
from typing import Any


def events(log: str) -> list[dict[str, Any]]:
    """The lines of a log that are complete."""
    return [json.loads(line) for line in log.split("\n")[:-1] if line.startswith("{")]


def metrics_addresses(log: str) -> list[str]:
    """Where a process serves metrics, once it does."""
    return [each["address"] for each in events(log) if each["message"] == "serving metrics"]
