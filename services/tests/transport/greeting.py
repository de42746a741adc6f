"""Helpers for worker streams: the stub and the Hello message."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import grpc

import remy_simulator
from remy_proto.v1 import rule_table_pb2, worker_service_pb2, worker_service_pb2_grpc


def make_stub(channel: grpc.aio.Channel) -> Any:
    """Returns the generated stub, which has no type hints."""
    make: Any = worker_service_pb2_grpc.WorkerServiceStub
    return make(channel)


def hello(worker_id: str, /, **changes: Any) -> worker_service_pb2.WorkRequest:
    """Returns a valid Hello with some fields changed."""
    fields: dict[str, Any] = {
        "worker_id": worker_id,
        "version": "0",
        "simulator_version": version("remy-simulator"),
        "simulator_digest": remy_simulator.fingerprint(),
        "scale_free_digest": remy_simulator.fingerprint(rule_table_pb2.RULES_SCALE_FREE),
        "signals_digest": remy_simulator.signals_fingerprint(),
        "protocols_digest": remy_simulator.protocols_fingerprint(),
        "path_model_digest": remy_simulator.path_model_fingerprint(),
        "network_signals_digest": remy_simulator.network_signals_fingerprint(),
        "threads": 1,
        **changes,
    }
    return worker_service_pb2.WorkRequest(hello=worker_service_pb2.Hello(**fields))
