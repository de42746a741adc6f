"""Calls that move jobs between farms: ExportJob and ImportJob."""

from __future__ import annotations

from collections.abc import AsyncIterator

from remy_farm.v1 import design_service_pb2 as messages
from remy_farm.v1 import job_pb2
from remy_services.coordinator.access.caller import current_caller
from remy_services.coordinator.access.roles import Role
from remy_services.coordinator.answering.refusal import already_exists, bad_field
from remy_services.coordinator.calls.job_checks import checked_job
from remy_services.coordinator.farm import Farm
from remy_services.jobs.imports import NoJob, as_imported, check_job
from remy_services.stores import (
    ArchiveError,
    JobExists,
    export_job,
    put_archive,
    unseal_archive,
)

_PART_BYTES = 256 << 10


async def send_job(
    farm: Farm, request: messages.ExportJobRequest
) -> AsyncIterator[messages.ExportJobResponse]:
    """A job's archive, in parts."""
    keeper = await farm.catalogue.find(request.job)
    environment = farm.environment
    archive = await environment.threads.store(export_job, environment.store, keeper.job_id)
    for start in range(0, len(archive), _PART_BYTES):
        yield messages.ExportJobResponse(part=archive[start : start + _PART_BYTES])


async def receive_job(
    farm: Farm, requests: AsyncIterator[messages.ImportJobRequest]
) -> job_pb2.Job:
    """Stores a job that was exported. It belongs to the caller, unless an administrator brings it
    back to its owner."""
    data = bytearray()
    most = farm.settings.calls.archive_bytes
    async for request in requests:
        data += request.part
        if len(data) > most:
            raise bad_field("part", f"makes the archive longer than {most} bytes")
    environment, caller = farm.environment, current_caller()
    try:
        archive = await environment.threads.compute(unseal_archive, bytes(data), limit_bytes=most)
        check_job(archive)
        checked_job(archive.record.job)
        owner = archive.record.job.owner if caller.role == Role.ADMIN else caller.name
        as_imported(archive, environment.clock(), by=caller.name, owner=owner)
        job_id = await environment.threads.store(put_archive, environment.store, archive)
    except (ArchiveError, NoJob) as error:
        raise bad_field("part", f"is not of a job that was exported: {error}") from error
    except JobExists as error:
        job_id = archive.record.job.id
        raise already_exists("remy_farm.v1.Job", job_id, f"job {job_id} is here already") from error
    return farm.shown(await farm.catalogue.find(job_id))
