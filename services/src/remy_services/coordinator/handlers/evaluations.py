"""Handlers of the calls that submit evaluation jobs and read their outcomes."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Final

from google.protobuf.message import DecodeError

from remy_farm.evaluation.tasks import nominal_packets
from remy_proto.completion import complete
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import evaluation_pb2, job_pb2, progress_pb2
from remy_services.coordinator.access import current_caller
from remy_services.coordinator.farm import Farm
from remy_services.coordinator.handlers.changes import (
    check_name,
    checked_job,
    claim_recordings,
    find_earlier_request,
)
from remy_services.coordinator.refusals import failed_precondition, invalid_field
from remy_services.transport.grpc import SimulatorIdentity
from remy_simulator.columns import specimen_count
from remy_simulator.traces import named_traces

_MOST_PARTS: Final = 20_000
_PIECE_BYTES: Final = 256 << 10
_NAME: Final = "evaluation"


async def submit_evaluation(
    farm: Farm, requests: AsyncIterator[messages.SubmitEvaluationRequest]
) -> messages.SubmitEvaluationResponse:
    """Creates an evaluation job from a stream of requests."""
    head = messages.SubmitEvaluationRequest()
    contents: list[bytes] = []
    size, most = 0, farm.settings.calls.evaluation_bytes
    async for request in requests:
        if not contents:
            head.CopyFrom(request)
        contents.append(request.request)
        size += len(request.request)
        if size > most or len(contents) > _MOST_PARTS:
            problem = f"exceeds the limit of {most} bytes or {_MOST_PARTS} requests per job"
            raise invalid_field("request", problem)
    complete(head)
    simulator = SimulatorIdentity.own()
    if head.simulator_sha256 != simulator.sha256:
        problem = (
            f"differs from this coordinator's simulator (version {simulator.version}), so results "
            "would differ; install the same version on both sides"
        )
        raise invalid_field("simulator_sha256", problem)
    work = await farm.environment.threads.compute(_work_of, contents, simulator.sha256)
    # The hash leaves out name, priority and weight: they do not change the outcome.
    sha256 = hashlib.sha256(b"".join(part.sha256 for part in work.parts)).digest()
    earlier = find_earlier_request(farm, head.client_request_id, sha256)
    if earlier is not None:
        return messages.SubmitEvaluationResponse(job=earlier)
    check_name(head.name)
    job = checked_job(
        job_pb2.Job(
            name=head.name or _NAME,
            owner=current_caller().name,
            priority=head.priority,
            weight=head.weight,
            queue_name=head.queue_name,
            evaluation=work,
        )
    )
    await claim_recordings(farm, work.traces, "request")
    record = job_pb2.JobRecord(
        job=job, client_request_id=head.client_request_id, request_sha256=sha256
    )
    parts = [
        job_pb2.JobEpoch(
            record=progress_pb2.EpochRecord(epoch=number),
            part=job_pb2.EvaluatedPart(request=content),
        )
        for number, content in enumerate(contents)
    ]
    key = f"{job.owner}/{head.client_request_id}" if head.client_request_id else None
    handle, is_new = await farm.catalogue.submit(record, key, parts)
    if is_new:
        farm.scheduler.reschedule()
    return messages.SubmitEvaluationResponse(job=farm.shown(handle))


def _work_of(contents: list[bytes], simulator_sha256: bytes) -> job_pb2.EvaluationWork:
    """Builds the job's list of parts.

    Raises CallRefused for requests that are empty or that contain link traces.
    """
    work = job_pb2.EvaluationWork(simulator_sha256=simulator_sha256)
    traces: set[bytes] = set()
    for number, content in enumerate(contents):
        try:
            request = evaluation_pb2.EvaluationRequest.FromString(content)
        except DecodeError as error:
            raise invalid_field("request", f"{number} is not an EvaluationRequest") from error
        if request.specimens or not specimen_count(request) or not request.candidates:
            raise invalid_field(
                "request", f"{number} must have candidates and specimens as columns"
            )
        if any(trace.opportunities_us for trace in request.traces):
            raise invalid_field(
                "request", f"{number} contains link traces; upload them with UploadTrace"
            )
        traces.update(named_traces(request))
        packets = float(nominal_packets(request).sum()) * len(request.candidates)
        sha256 = hashlib.sha256(simulator_sha256 + content).digest()
        work.parts.add(sha256=sha256, packets=packets)
    if not contents:
        raise invalid_field("request", "is required: at least one request to evaluate")
    work.traces.extend(sorted(traces))
    return work


async def read_evaluation(
    farm: Farm, request: messages.ReadEvaluationRequest
) -> AsyncIterator[messages.ReadEvaluationResponse]:
    """Streams the serialized outcome of one part."""
    handle = await farm.catalogue.find(request.job)
    job, number = handle.job, request.part
    if not job.HasField("evaluation"):
        raise failed_precondition(
            "JOB_KIND", job.id, f"job {job.id} is a design job, which has no evaluation outcomes"
        )
    if number >= len(job.evaluation.parts):
        raise invalid_field(
            "part",
            f"is {number}, but job {job.id} has {len(job.evaluation.parts)} parts, numbered from 0",
        )
    if number >= job.progress.step:
        raise failed_precondition(
            "JOB_PROGRESS", job.id, f"part {number} of job {job.id} is not evaluated yet"
        )
    environment = farm.environment
    data = await environment.threads.store(environment.store.epoch, job.id, number)
    assert data is not None, "committed parts are in the store"
    outcome = job_pb2.JobEpoch.FromString(data).part.outcome
    for start in range(0, len(outcome), _PIECE_BYTES):
        yield messages.ReadEvaluationResponse(piece=outcome[start : start + _PIECE_BYTES])
