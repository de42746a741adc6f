"""What processes say in their logs."""

from __future__ import annotations

import json


def metrics_addresses(log: str) -> list[str]:
    """Where a process serves metrics, once it does."""
    events = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [each["address"] for each in events if each.get("message") == "serving metrics"]
