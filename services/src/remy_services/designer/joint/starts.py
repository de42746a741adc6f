"""How many short climbs there are before one goes on."""

from __future__ import annotations

from remy_farm.v1 import spec_pb2
from remy_services.designer.first_table import STARTS


def start_count(search: spec_pb2.JointSearch) -> int:
    """How many starts are tried."""
    return min(search.starts, STARTS)
