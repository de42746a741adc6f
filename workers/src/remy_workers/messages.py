"""What a worker says of tasks that it has no result of."""

from __future__ import annotations

from collections.abc import Sequence

from remy_farm.v1 import worker_service_pb2


def refusal(lease_id: int, why: str) -> worker_service_pb2.WorkRequest:
    """The simulator does not take the task. One sentence."""
    refused = worker_service_pb2.TaskRefused(lease_id=lease_id, why=why)
    return worker_service_pb2.WorkRequest(refused=refused)


def returned(lease_ids: Sequence[int]) -> worker_service_pb2.WorkRequest:
    """The worker does not do these tasks, or nobody wants to know what came of them."""
    gone = worker_service_pb2.TasksReturned(lease_ids=lease_ids)
    return worker_service_pb2.WorkRequest(returned=gone)
