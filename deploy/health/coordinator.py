"""What Docker runs in a coordinator's container: ends with 0 if it serves designs."""

import os
import sys
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

_READY = health_pb2.HealthCheckRequest(service="readiness")

_, _, port = os.environ["REMY_FARM_COORDINATOR_HEALTH_LISTEN"].rpartition(":")
try:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        answer = stub.Check(_READY, timeout=5)
except grpc.RpcError as error:
    sys.exit(f"Nothing answers about health at port {port}: {error.details()}.")
if answer.status != health_pb2.HealthCheckResponse.SERVING:
    sys.exit("It runs, but waits for its store.")
