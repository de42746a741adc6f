"""Runs a node of a Ray cluster until standard input is closed: `python -m benchmarks.ray_node`.

`ray start` cannot start several nodes on the loopback address, and its nodes outlive it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from ray._private.node import Node
from ray._private.parameter import RayParams

_STORE_BYTES = 80_000_000


def main() -> None:
    """Reads settings from a JSON argument; prints a JSON line when the node is ready."""
    settings: dict[str, Any] = json.loads(sys.argv[1])
    gcs_address = settings.get("gcs_address")
    parameters = RayParams(
        node_ip_address="127.0.0.1",
        num_cpus=settings["cpus"],
        num_gpus=0,
        resources=settings["resources"],
        temp_dir=settings["folder"],
        object_store_memory=_STORE_BYTES,
        min_worker_port=0,
        max_worker_port=0,
        include_dashboard=False,
        include_log_monitor="",
        gcs_address=gcs_address,
        redis_address=gcs_address,
        gcs_server_port=settings.get("port", 0),
        node_manager_port=0,
    )
    node = Node(parameters, head=gcs_address is None, shutdown_at_exit=True, spawn_reaper=True)
    processes = {
        name: [each.process.pid for each in group] for name, group in node.all_processes.items()
    }
    print(json.dumps({"address": node.gcs_address, "processes": processes}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
