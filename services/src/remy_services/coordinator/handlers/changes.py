"""Calls that make, change and move jobs."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import AsyncIterator, Iterable

import grpc

from remy_farm.designer import Designer
from remy_farm.specification import check_spec, parse_spec
from remy_farm.specification.models import designs
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
from remy_services.coordinator.refusals import CallRefused, already_exists, bad_field, not_now
from remy_services.jobs.requests import (
    NoJob,
    as_imported,
    check_job,
    extended,
    problem_with_name,
    with_settings,
)
from remy_services.jobs.states import (
    CANCELLED,
    CANCELLING,
    PAUSED,
    Draft,
    NotNow,
    Operation,
    state_after,
)
from remy_services.stores.archive import ArchiveError, export_job, put_archive, unseal_archive
from remy_services.stores.contract import JobExists
from remy_services.stores.recordings import MOST_RECORDING_BYTES, claim_recording, put_recording
from remy_simulator.messages import from_native, to_native


def check_may_change(job: job_pb2.Job) -> None:
    """Raises CallRefused unless the job is the caller's, or the caller may change all."""
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
    """Raises CallRefused for a name that a job cannot be given; empty: it is given none."""
    problem = problem_with_name(name) if name else None
    if problem is not None:
        raise bad_field("name", problem)


def checked_job(job: job_pb2.Job) -> job_pb2.Job:
    """The job itself. Raises CallRefused if its weight, campaign or queue cannot be."""
    if not (0 < job.weight <= _LARGEST_WEIGHT) or not math.isfinite(job.weight):
        raise bad_field("weight", f"is {job.weight:g}, but must be above 0 and at most 1e6")
    if job.campaign and (len(job.campaign) > _LONGEST_CAMPAIGN or not job.campaign.isprintable()):
        raise bad_field(
            "campaign", f"must be printable text of at most {_LONGEST_CAMPAIGN} characters"
        )
    if job.queue_name and not _QUEUE_NAME.fullmatch(job.queue_name):
        problem = "must be at most 63 small letters, digits and dashes, as Kubernetes names a queue"
        raise bad_field("queue_name", f"is {job.queue_name[:_LONGEST_CAMPAIGN]!r}, but {problem}")
    return job


async def receive_trace(
    farm: Farm, requests: AsyncIterator[messages.UploadTraceRequest]
) -> messages.UploadTraceResponse:
    """Keeps a recording, which links may follow."""
    data = bytearray()
    async for request in requests:
        data += request.part
        if len(data) > MOST_RECORDING_BYTES:
            problem = f"makes the trace longer than {MOST_RECORDING_BYTES} bytes, 8 an opportunity"
            raise bad_field("part", problem)
    content, environment = bytes(data), farm.environment
    try:
        await environment.threads.compute(check_trace, content)
    except ValueError as problem:
        raise bad_field("part", f"is not of a trace that a link can follow: {problem}") from problem
    sha256 = await environment.threads.store(put_recording, environment.store, content)
    return messages.UploadTraceResponse(sha256=sha256)


async def claim_recordings(farm: Farm, hashes: Iterable[bytes], field: str) -> None:
    """Has recordings that a field of the request names stay; raises CallRefused if one is not
    here."""
    environment = farm.environment
    for sha256 in hashes:
        if not await environment.threads.store(claim_recording, environment.store, sha256):
            problem = (
                f"names the trace {sha256.hex()}, which is not here; it is to be uploaded first"
            )
            raise bad_field(field, problem)


_LONGEST_REQUEST_ID = 200

_Request = messages.SubmitJobRequest | messages.ForkJobRequest


async def submit_job(
    farm: Farm, request: messages.SubmitJobRequest, *, job_id: str = "", paused: bool = False
) -> messages.SubmitJobResponse:
    """Stores a job, unless the request is only to be checked. `job_id` is the new job's, if given;
    a `paused` one waits until it is resumed."""
    sha256 = _hash(request)
    earlier = (
        None if request.validate_only else made_before(farm, request.client_request_id, sha256)
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
    """Stores a job that begins with the table of another."""
    # The new job may well have the name by which the old one was asked for.
    sha256 = _hash(request)
    earlier = made_before(farm, request.client_request_id, sha256)
    if earlier is not None:
        return messages.ForkJobResponse(job=earlier)
    complete(request)
    check_name(request.name)
    handle = await find_design(farm, request.job)
    origin = handle.job
    if len(names := designs(origin.spec)) > 1:
        raise bad_field(
            "job",
            f"designs {len(names)} tables ({', '.join(names)}), and a design begins with one table",
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


def made_before(farm: Farm, request_id: str, sha256: bytes) -> job_pb2.Job | None:
    """What the same request of the caller made when it came before; None if it did not, as far as
    is known. Raises CallRefused or RequestIdTaken."""
    if len(request_id) > _LONGEST_REQUEST_ID:
        raise bad_field("client_request_id", f"is longer than {_LONGEST_REQUEST_ID} characters")
    if not request_id:
        return None
    handle = farm.catalogue.made_by(current_caller().name, request_id)
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
    # A search that cannot begin is refused here rather than when its turn comes.
    native = None if first_table is None else to_native(first_table)
    await farm.environment.threads.compute(Designer, job.spec, first_table=native)
    objection = farm.objection(job.spec)
    if objection is not None:
        field, _, problem = objection.partition(" ")
        raise bad_field(f"spec.{field}", problem)
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
        farm.scheduler.look()
    return farm.shown(handle)


def _hash(request: _Request) -> bytes:
    """Of what the client said: what it left out may mean something else to a later coordinator."""
    return hashlib.sha256(request.SerializeToString(deterministic=True)).digest()


def _spec_of(farm: Farm, request: messages.SubmitJobRequest) -> spec_pb2.DesignSpec:
    most = farm.settings.calls.spec_bytes
    match request.WhichOneof("what"):
        case "spec":
            if request.spec.ByteSize() > most:
                raise bad_field("spec", f"has more than {most} bytes")
            check_spec(request.spec)
            return request.spec
        case "spec_text":
            if len(request.spec_text.encode()) > most:
                raise bad_field("spec_text", f"has more than {most} bytes")
            return parse_spec(request.spec_text)
    raise bad_field("spec", "or spec_text must be given")


async def pause_job(farm: Farm, request: messages.PauseJobRequest) -> messages.PauseJobResponse:
    """Has a job keep what it has, and wait until it is resumed."""
    return messages.PauseJobResponse(job=await _move(farm, request.job, Operation.PAUSE))


async def resume_job(farm: Farm, request: messages.ResumeJobRequest) -> messages.ResumeJobResponse:
    """Has a job go on when its turn comes."""
    return messages.ResumeJobResponse(job=await _move(farm, request.job, Operation.RESUME))


async def cancel_job(farm: Farm, request: messages.CancelJobRequest) -> messages.CancelJobResponse:
    """Ends a job. Asked a second time, it ends without its closing evaluation."""
    handle = await _changeable(farm, request.job)
    run = farm.scheduler.run_of(handle.job_id)
    if handle.job.state == CANCELLING and run is not None:
        run.hurry()
    return messages.CancelJobResponse(job=await _move(farm, handle.job_id, Operation.CANCEL))


async def extend_job(farm: Farm, request: messages.ExtendJobRequest) -> messages.ExtendJobResponse:
    """Changes a job's budgets or priority; with other budgets a finished one goes on."""
    handle = await _changeable(farm, request.job)
    stop = request.stop if request.HasField("stop") else None
    joint_steps = request.joint_steps if request.HasField("joint_steps") else None
    by = current_caller().name

    priority = request.priority if request.HasField("priority") else None

    def extend(draft: Draft) -> None:
        if priority is not None and stop is None and joint_steps is None:
            draft.changed_priority(priority, by=by)
            return
        check_is_design(draft.job)
        following = _following(Operation.EXTEND, draft.job)
        spec = extended(draft.job.spec, draft.job.progress, stop=stop, joint_steps=joint_steps)
        draft.changed_budget(spec, by=by)
        if priority is not None:
            draft.changed_priority(priority, by=by)
        if following != draft.job.state:
            draft.move(following, by=by)

    await farm.change(handle, extend)
    return messages.ExtendJobResponse(job=farm.shown(handle))


async def delete_job(farm: Farm, request: messages.DeleteJobRequest) -> messages.DeleteJobResponse:
    """Removes a job."""
    handle = await _changeable(farm, request.job)
    _following(Operation.DELETE, handle.job)
    await farm.delete(handle)
    return messages.DeleteJobResponse()


async def _move(farm: Farm, name: str, operation: Operation) -> job_pb2.Job:
    handle = await _changeable(farm, name)
    by = current_caller().name

    def move(draft: Draft) -> None:
        following = _following(operation, draft.job)
        if following == CANCELLED != draft.job.state:
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
    except NotNow as error:
        raise not_now("JOB_STATE", job.id, f"job {job.id}: {error}") from error


_PART_BYTES = 256 << 10


async def send_job(
    farm: Farm, request: messages.ExportJobRequest
) -> AsyncIterator[messages.ExportJobResponse]:
    """A job's archive, in parts."""
    handle = await farm.catalogue.find(request.job)
    environment = farm.environment
    archive = await environment.threads.store(export_job, environment.store, handle.job_id)
    for start in range(0, len(archive), _PART_BYTES):
        yield messages.ExportJobResponse(part=archive[start : start + _PART_BYTES])


async def receive_job(
    farm: Farm, requests: AsyncIterator[messages.ImportJobRequest]
) -> messages.ImportJobResponse:
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
    return messages.ImportJobResponse(job=farm.shown(await farm.catalogue.find(job_id)))
