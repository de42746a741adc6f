"""Docker's health check of a coordinator: exits with 0 if it is ready to serve."""

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
        response = stub.Check(_READY, timeout=5)
except grpc.RpcError as error:
    sys.exit(f"No health service answers at port {port}: {error.details()}.")
if response.status != health_pb2.HealthCheckResponse.SERVING:
    sys.exit("The coordinator runs but is not ready: it waits for its store.")
