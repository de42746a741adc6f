"""Handlers of the calls that create, change, export and import jobs."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import AsyncIterator, Iterable

import grpc

from remy_farm.designer import Designer
from remy_farm.specification import check_spec, parse_spec
from remy_farm.specification.models import designed_tables
from remy_farm.specification.referenced_files import trace_hashes
from remy_farm.specification.traces import check_trace
from remy_proto.completion import complete
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2, rule_table_pb2, spec_pb2
from remy_services.coordinator.access import Role, current_caller
from remy_services.coordinator.farm import Farm, check_same_request
from remy_services.coordinator.handlers.queries import (
    check_is_design,
    epoch_tables,
    find_design,
    newest_tables,
)
from remy_services.coordinator.job_handle import JobHandle
from remy_services.coordinator.refusals import (
    CallRefused,
    already_exists,
    failed_precondition,
    invalid_field,
)
from remy_services.jobs.requests import (
    InvalidJob,
    check_job,
    extend_budgets,
    prepare_import,
    problem_with_name,
    with_settings,
)
from remy_services.jobs.states import (
    CANCELLED,
    CANCELLING,
    PAUSED,
    Draft,
    Operation,
    WrongState,
    state_after,
)
from remy_services.stores.archive import ArchiveError, export_job, put_archive, unseal_archive
from remy_services.stores.contract import JobExists
from remy_services.stores.recordings import MAX_RECORDING_BYTES, claim_recording, put_recording
from remy_simulator.messages import from_native, to_native


def check_may_change(job: job_pb2.Job) -> None:
    """Raises CallRefused unless the caller owns the job or is an administrator."""
    caller = current_caller()
    if caller.role != Role.ADMIN and caller.name != job.owner:
        raise CallRefused(
            grpc.StatusCode.PERMISSION_DENIED,
            f"job {job.id} belongs to {job.owner}; {caller.name} may not change it",
        )


_LONGEST_CAMPAIGN = 200
_LARGEST_WEIGHT = 1e6
_QUEUE_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def check_name(name: str) -> None:
    """Raises CallRefused for an invalid job name. An empty name selects the default."""
    problem = problem_with_name(name) if name else None
    if problem is not None:
        raise invalid_field("name", problem)


def checked_job(job: job_pb2.Job) -> job_pb2.Job:
    """Returns the job. Raises CallRefused if its weight, campaign or queue name is invalid."""
    if not (0 < job.weight <= _LARGEST_WEIGHT) or not math.isfinite(job.weight):
        raise invalid_field("weight", f"is {job.weight:g}, but must be above 0 and at most 1e6")
    if job.campaign and (len(job.campaign) > _LONGEST_CAMPAIGN or not job.campaign.isprintable()):
        raise invalid_field(
            "campaign", f"must be printable text of at most {_LONGEST_CAMPAIGN} characters"
        )
    if job.queue_name and not _QUEUE_NAME.fullmatch(job.queue_name):
        problem = "must be at most 63 lower-case letters, digits and dashes, as Kubernetes requires"
        raise invalid_field(
            "queue_name", f"is {job.queue_name[:_LONGEST_CAMPAIGN]!r}, but {problem}"
        )
    return job


async def receive_trace(
    farm: Farm, requests: AsyncIterator[messages.UploadTraceRequest]
) -> messages.UploadTraceResponse:
    """Stores an uploaded link trace."""
    data = bytearray()
    async for request in requests:
        data += request.part
        if len(data) > MAX_RECORDING_BYTES:
            problem = (
                f"makes the trace longer than {MAX_RECORDING_BYTES} bytes (8 bytes per opportunity)"
            )
            raise invalid_field("part", problem)
    content, environment = bytes(data), farm.environment
    try:
        await environment.threads.compute(check_trace, content)
    except ValueError as problem:
        raise invalid_field("part", f"is not a valid link trace: {problem}") from problem
    sha256 = await environment.threads.store(put_recording, environment.store, content)
    return messages.UploadTraceResponse(sha256=sha256)


async def claim_recordings(farm: Farm, hashes: Iterable[bytes], field: str) -> None:
    """Protects the traces that a request field names from being swept.

    Raises CallRefused if a trace has not been uploaded.
    """
    environment = farm.environment
    for sha256 in hashes:
        if not await environment.threads.store(claim_recording, environment.store, sha256):
            problem = f"names the trace {sha256.hex()}, which is not on this farm; upload it first"
            raise invalid_field(field, problem)


_LONGEST_REQUEST_ID = 200

_Request = messages.SubmitJobRequest | messages.ForkJobRequest


async def submit_job(
    farm: Farm, request: messages.SubmitJobRequest, *, job_id: str = "", paused: bool = False
) -> messages.SubmitJobResponse:
    """Creates a job, unless the request only asks for validation.

    `job_id` is the new job's id; empty generates one. A `paused` job waits until it is resumed.
    """
    sha256 = _hash(request)
    earlier = (
        None
        if request.validate_only
        else find_earlier_request(farm, request.client_request_id, sha256)
    )
    if earlier is not None:
        return messages.SubmitJobResponse(job=earlier)
    complete(request)
    check_name(request.name)
    spec = await farm.environment.threads.compute(_spec_of, farm, request)
    job = checked_job(
        job_pb2.Job(
            id=job_id,
            state=PAUSED if paused else None,
            name=request.name or spec.name,
            owner=current_caller().name,
            priority=request.priority,
            weight=request.weight,
            spec=spec,
            campaign=request.campaign,
            queue_name=request.queue_name,
        )
    )
    return messages.SubmitJobResponse(
        job=await _store(farm, request, job, sha256, validate_only=request.validate_only)
    )


async def fork_job(farm: Farm, request: messages.ForkJobRequest) -> messages.ForkJobResponse:
    """Creates a job that starts from another job's table."""
    # Before the origin is looked up: the new job may have its name, which is then ambiguous.
    sha256 = _hash(request)
    earlier = find_earlier_request(farm, request.client_request_id, sha256)
    if earlier is not None:
        return messages.ForkJobResponse(job=earlier)
    complete(request)
    check_name(request.name)
    handle = await find_design(farm, request.job)
    origin = handle.job
    if len(names := designed_tables(origin.spec)) > 1:
        raise invalid_field(
            "job",
            f"designs {len(names)} tables ({', '.join(names)}), but a fork starts from exactly one",
        )
    if request.HasField("epoch"):
        (table, *_), epoch = await epoch_tables(farm, handle, request.epoch), request.epoch
    else:
        (table, *_), epoch = await newest_tables(farm, handle), origin.progress.epoch
    settings = list(request.settings)
    spec = await farm.environment.threads.compute(with_settings, origin.spec, settings)
    job = checked_job(
        job_pb2.Job(
            name=request.name or origin.name,
            owner=current_caller().name,
            priority=request.priority if request.HasField("priority") else origin.priority,
            weight=origin.weight,
            spec=spec,
            campaign=origin.campaign,
            queue_name=origin.queue_name,
            fork=job_pb2.ForkOrigin(job_id=origin.id, epoch=epoch),
        )
    )
    return messages.ForkJobResponse(job=await _store(farm, request, job, sha256, first_table=table))


def find_earlier_request(farm: Farm, request_id: str, sha256: bytes) -> job_pb2.Job | None:
    """Returns the job that an earlier copy of this request created, or None.

    Raises CallRefused for an overlong id, and RequestIdTaken if the id belongs to another request.
    """
    if len(request_id) > _LONGEST_REQUEST_ID:
        raise invalid_field("client_request_id", f"is longer than {_LONGEST_REQUEST_ID} characters")
    if not request_id:
        return None
    handle = farm.catalogue.find_by_request_id(current_caller().name, request_id)
    if handle is None:
        return None
    check_same_request(handle, sha256)
    return farm.shown(handle)


async def _store(
    farm: Farm,
    request: _Request,
    job: job_pb2.Job,
    sha256: bytes,
    *,
    first_table: rule_table_pb2.RuleTable | None = None,
    validate_only: bool = False,
) -> job_pb2.Job:
    # Fails here, rather than when the job is scheduled, if the search cannot start.
    native = None if first_table is None else to_native(first_table)
    await farm.environment.threads.compute(Designer, job.spec, first_table=native)
    unsupported = farm.unsupported_reason(job.spec)
    if unsupported is not None:
        field, _, problem = unsupported.partition(" ")
        raise invalid_field(f"spec.{field}", problem)
    if validate_only:
        return job
    await claim_recordings(farm, trace_hashes(job.spec), "spec")
    record = job_pb2.JobRecord(
        job=job,
        client_request_id=request.client_request_id,
        request_sha256=sha256,
        first_table=None if native is None else from_native(native),
    )
    request_id = request.client_request_id
    key = f"{job.owner}/{request_id}" if request_id else None
    handle, is_new = await farm.catalogue.submit(record, key)
    if is_new:
        farm.scheduler.reschedule()
    return farm.shown(handle)


def _hash(request: _Request) -> bytes:
    """Hashes the request without defaults, which may differ in a later coordinator."""
    return hashlib.sha256(request.SerializeToString(deterministic=True)).digest()


def _spec_of(farm: Farm, request: messages.SubmitJobRequest) -> spec_pb2.DesignSpec:
    most = farm.settings.calls.spec_bytes
    match request.WhichOneof("what"):
        case "spec":
            if request.spec.ByteSize() > most:
                raise invalid_field("spec", f"has more than {most} bytes")
            check_spec(request.spec)
            return request.spec
        case "spec_text":
            if len(request.spec_text.encode()) > most:
                raise invalid_field("spec_text", f"has more than {most} bytes")
            return parse_spec(request.spec_text)
    raise invalid_field("spec", "or spec_text is required")


async def pause_job(farm: Farm, request: messages.PauseJobRequest) -> messages.PauseJobResponse:
    """Pauses a job after a checkpoint."""
    return messages.PauseJobResponse(job=await _move(farm, request.job, Operation.PAUSE))


async def resume_job(farm: Farm, request: messages.ResumeJobRequest) -> messages.ResumeJobResponse:
    """Returns a paused or failed job to the queue."""
    return messages.ResumeJobResponse(job=await _move(farm, request.job, Operation.RESUME))


async def cancel_job(farm: Farm, request: messages.CancelJobRequest) -> messages.CancelJobResponse:
    """Cancels a job. A second call skips its closing evaluation."""
    handle = await _changeable(farm, request.job)
    run = farm.scheduler.run_of(handle.job_id)
    if handle.job.state == CANCELLING and run is not None:
        run.skip_closing_evaluation()
    return messages.CancelJobResponse(job=await _move(farm, handle.job_id, Operation.CANCEL))


async def extend_job(farm: Farm, request: messages.ExtendJobRequest) -> messages.ExtendJobResponse:
    """Changes a job's budgets or priority. New budgets return a finished job to the queue."""
    handle = await _changeable(farm, request.job)
    stop = request.stop if request.HasField("stop") else None
    joint_steps = request.joint_steps if request.HasField("joint_steps") else None
    by = current_caller().name

    priority = request.priority if request.HasField("priority") else None

    def extend(draft: Draft) -> None:
        if priority is not None and stop is None and joint_steps is None:
            draft.change_priority(priority, by=by)
            return
        check_is_design(draft.job)
        following = _following(Operation.EXTEND, draft.job)
        spec = extend_budgets(
            draft.job.spec, draft.job.progress, stop=stop, joint_steps=joint_steps
        )
        draft.change_budget(spec, by=by)
        if priority is not None:
            draft.change_priority(priority, by=by)
        if following != draft.job.state:
            draft.move(following, by=by)

    await farm.change(handle, extend)
    return messages.ExtendJobResponse(job=farm.shown(handle))


async def delete_job(farm: Farm, request: messages.DeleteJobRequest) -> messages.DeleteJobResponse:
    """Deletes a job."""
    handle = await _changeable(farm, request.job)
    _following(Operation.DELETE, handle.job)
    await farm.delete(handle)
    return messages.DeleteJobResponse()


async def _move(farm: Farm, name: str, operation: Operation) -> job_pb2.Job:
    handle = await _changeable(farm, name)
    by = current_caller().name

    def move(draft: Draft) -> None:
        following = _following(operation, draft.job)
        if following == CANCELLED and draft.job.state != CANCELLED:
            draft.cancel(by=by)
        elif following != draft.job.state:
            draft.move(following, by=by)

    await farm.change(handle, move)
    return farm.shown(handle)


async def _changeable(farm: Farm, name: str) -> JobHandle:
    handle = await farm.catalogue.find(name)
    check_may_change(handle.job)
    return handle


def _following(operation: Operation, job: job_pb2.Job) -> job_pb2.JobState:
    try:
        return state_after(operation, job.state)
    except WrongState as error:
        raise failed_precondition("JOB_STATE", job.id, f"job {job.id}: {error}") from error


_PART_BYTES = 256 << 10


async def send_job(
    farm: Farm, request: messages.ExportJobRequest
) -> AsyncIterator[messages.ExportJobResponse]:
    """Streams a job's archive in parts."""
    handle = await farm.catalogue.find(request.job)
    environment = farm.environment
    archive = await environment.threads.store(export_job, environment.store, handle.job_id)
    for start in range(0, len(archive), _PART_BYTES):
        yield messages.ExportJobResponse(part=archive[start : start + _PART_BYTES])


async def receive_job(
    farm: Farm, requests: AsyncIterator[messages.ImportJobRequest]
) -> messages.ImportJobResponse:
    """Imports an exported job.

    The caller becomes its owner. A job that an administrator imports keeps its owner.
    """
    data = bytearray()
    most = farm.settings.calls.archive_bytes
    async for request in requests:
        data += request.part
        if len(data) > most:
            raise invalid_field("part", f"makes the archive longer than {most} bytes")
    environment, caller = farm.environment, current_caller()
    try:
        archive = await environment.threads.compute(unseal_archive, bytes(data), limit_bytes=most)
        check_job(archive)
        checked_job(archive.record.job)
        owner = archive.record.job.owner if caller.role == Role.ADMIN else caller.name
        prepare_import(archive, environment.clock(), by=caller.name, owner=owner)
        job_id = await environment.threads.store(put_archive, environment.store, archive)
    except (ArchiveError, InvalidJob) as error:
        raise invalid_field("part", f"is not an exported job: {error}") from error
    except JobExists as error:
        job_id = archive.record.job.id
        raise already_exists(
            "remy_farm.v1.Job", job_id, f"job {job_id} already exists on this farm"
        ) from error
    return messages.ImportJobResponse(job=farm.shown(await farm.catalogue.find(job_id)))
