"""What a worker says of itself."""

from __future__ import annotations

import socket
from importlib.metadata import version

import remy_simulator
from remy_farm.v1 import worker_service_pb2
from remy_simulator.cpus import allowed_cpus


def introduce(worker_id: str, threads: int) -> worker_service_pb2.Hello:
    """Of the process that will simulate, which is this one."""
    return worker_service_pb2.Hello(
        worker_id=worker_id,
        version=version("remy-farm-worker"),
        simulator_version=version("remy-simulator"),
        simulator_digest=remy_simulator.fingerprint(),
        cpus=allowed_cpus(),
        threads=threads,
        host=socket.gethostname(),
    )
