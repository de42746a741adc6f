"""Valid and fuzzed calls of every method."""

from __future__ import annotations

import random
from typing import Any

import grpc

from remy_proto.v1 import design_service_pb2, spec_pb2, worker_service_pb2
from remy_proto.v1 import design_service_pb2 as messages
from services.tests.coordinator.running_server import refusal

DESIGN_METHODS: list[Any] = list(
    design_service_pb2.DESCRIPTOR.services_by_name["DesignService"].methods
)
WORK = worker_service_pb2.DESCRIPTOR.services_by_name["WorkerService"].methods_by_name["Work"]
#: Deadline of a call; a fuzzed stream may wait forever.
_SECONDS = 5.0


def call_with_bytes(
    channel: grpc.Channel,
    method: Any,
    requests: list[bytes],
    metadata: list[tuple[str, str]] | None = None,
) -> tuple[grpc.StatusCode, str]:
    """Calls a method with serialized requests; returns status and message.

    Unary methods get only the first request.
    """
    kind = (
        f"{'stream' if method.client_streaming else 'unary'}_"
        f"{'stream' if method.server_streaming else 'unary'}"
    )
    call = getattr(channel, kind)(f"/{method.containing_service.full_name}/{method.name}")
    request = iter(requests) if method.client_streaming else requests[0]
    try:
        response = call(request, timeout=_SECONDS, metadata=metadata)
        if method.server_streaming:
            for _ in response:
                pass
    except grpc.RpcError as error:
        return refusal(error)
    return grpc.StatusCode.OK, ""


def mutate(data: bytes, chance: random.Random) -> bytes:
    """Returns the bytes with random insertions, deletions and changes."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(changed) + 1)
        match chance.randrange(3):
            case 0:
                changed[place:place] = chance.randbytes(chance.randint(1, 5))
            case 1:
                del changed[place : place + chance.randint(1, 5)]
            case _:
                changed[place : place + 1] = bytes([chance.randrange(256)])
    return bytes(changed)


def valid_request(method: Any, job: str, spec: spec_pb2.DesignSpec) -> bytes:
    """Returns a valid serialized request for a method."""
    requests = {
        "SubmitJob": messages.SubmitJobRequest(spec=spec, validate_only=True),
        "ForkJob": messages.ForkJobRequest(job=job, settings=["objective.delta=2"]),
        "ListJobs": messages.ListJobsRequest(page_size=3),
        "CompareJobs": messages.CompareJobsRequest(jobs=[job, job]),
        "ExtendJob": messages.ExtendJobRequest(job=job, joint_steps=3),
    }
    request = requests.get(method.name, messages.GetJobRequest(job=job))
    return request.SerializeToString()
