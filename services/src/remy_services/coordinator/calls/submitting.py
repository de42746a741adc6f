"""Calls that make jobs: SubmitJob and ForkJob."""

from __future__ import annotations

import hashlib

from remy_farm.v1 import design_service_pb2 as messages
from remy_farm.v1 import job_pb2, rule_table_pb2, spec_pb2
from remy_services.coordinator.access.caller import current_caller
from remy_services.coordinator.answering.refusal import bad_field
from remy_services.coordinator.calls.job_checks import checked_job
from remy_services.coordinator.calls.tables import epoch_table, newest_table
from remy_services.coordinator.catalogue import check_same_request
from remy_services.coordinator.farm import Farm
from remy_services.designer import Designer
from remy_services.jobs.forks import with_settings
from remy_services.spec import check_spec, parse_spec
from remy_simulator.messages import from_native, to_native

_LONGEST_REQUEST_ID = 200

_Request = messages.SubmitJobRequest | messages.ForkJobRequest


async def submit_job(farm: Farm, request: messages.SubmitJobRequest) -> job_pb2.Job:
    """Stores a job, unless the request is only to be checked."""
    earlier = None if request.validate_only else _made_before(farm, request)
    if earlier is not None:
        return earlier
    spec = await farm.environment.threads.compute(_spec_of, farm, request)
    job = checked_job(
        job_pb2.Job(
            name=request.name or spec.name,
            owner=current_caller().name,
            priority=request.priority,
            weight=request.weight if request.HasField("weight") else 1.0,
            spec=spec,
            campaign=request.campaign,
        )
    )
    return await _store(farm, request, job, validate_only=request.validate_only)


async def fork_job(farm: Farm, request: messages.ForkJobRequest) -> job_pb2.Job:
    """Stores a job that begins with the table of another."""
    # The new job may well have the name by which the old one was asked for.
    earlier = _made_before(farm, request)
    if earlier is not None:
        return earlier
    keeper = await farm.catalogue.find(request.job)
    origin = keeper.job
    if request.HasField("epoch"):
        table, epoch = await epoch_table(farm, keeper, request.epoch), request.epoch
    else:
        table, epoch = await newest_table(farm, keeper), origin.progress.epoch
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
            fork=job_pb2.ForkOrigin(job_id=origin.id, epoch=epoch),
        )
    )
    return await _store(farm, request, job, first_table=table)


def _made_before(farm: Farm, request: _Request) -> job_pb2.Job | None:
    """What the same request made when it came before; None if it did not, as far as is known."""
    request_id = request.client_request_id
    if len(request_id) > _LONGEST_REQUEST_ID:
        raise bad_field("client_request_id", f"is longer than {_LONGEST_REQUEST_ID} characters")
    if not request_id:
        return None
    keeper = farm.catalogue.made_by(current_caller().name, request_id)
    if keeper is None:
        return None
    check_same_request(keeper, _hash(request))
    return farm.shown(keeper)


async def _store(
    farm: Farm,
    request: _Request,
    job: job_pb2.Job,
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
    record = job_pb2.JobRecord(
        job=job,
        client_request_id=request.client_request_id,
        request_sha256=_hash(request),
        first_table=None if native is None else from_native(native),
    )
    request_id = request.client_request_id
    key = f"{job.owner}/{request_id}" if request_id else None
    keeper, is_new = await farm.catalogue.submit(record, key)
    if is_new:
        farm.scheduler.look()
    return farm.shown(keeper)


def _hash(request: _Request) -> bytes:
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
