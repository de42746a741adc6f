"""Whose jobs a caller may change."""

from __future__ import annotations

import grpc

from remy_farm.v1 import job_pb2
from remy_services.coordinator.access.caller import current_caller
from remy_services.coordinator.access.roles import Role
from remy_services.coordinator.answering.refusal import CallRefused


def check_may_change(job: job_pb2.Job) -> None:
    """Raises CallRefused unless the job is the caller's, or the caller may change all."""
    caller = current_caller()
    if caller.role != Role.ADMIN and caller.name != job.owner:
        raise CallRefused(
            grpc.StatusCode.PERMISSION_DENIED,
            f"job {job.id} belongs to {job.owner}; {caller.name} may not change it",
        )
