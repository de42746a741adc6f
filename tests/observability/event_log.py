"""Reads events from the logs of processes."""

from __future__ import annotations

import json
from typing import Any


def events(log: str) -> list[dict[str, Any]]:
    """Returns the complete lines of a log as JSON objects."""
    return [json.loads(line) for line in log.split("\n")[:-1] if line.startswith("{")]


def metrics_addresses(log: str) -> list[str]:
    """Returns the addresses on which the process serves metrics, as far as it has logged them."""
    return [each["address"] for each in events(log) if each["message"] == "serving metrics"]
