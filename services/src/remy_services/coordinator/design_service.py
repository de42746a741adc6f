"""DesignService."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc

from remy_farm.v1 import design_service_pb2, design_service_pb2_grpc, job_pb2
from remy_services.coordinator.farm import Farm
from remy_services.coordinator.job_keeper import JobKeeper
from remy_services.jobs.states import CANCELLING, FINAL, PAUSED, PAUSING
from remy_services.spec import SpecError, check_spec, parse_spec

Context = grpc.aio.ServicerContext


class DesignService(design_service_pb2_grpc.DesignServiceServicer):
    """Answers for a Farm."""

    def __init__(self, farm: Farm) -> None:
        self._farm = farm

    async def SubmitJob(self, request, context):  # noqa: N802
        try:
            if request.WhichOneof("what") == "spec":
                spec = request.spec
                check_spec(spec)
            else:
                spec = parse_spec(request.spec_text)
        except SpecError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        job = job_pb2.Job(
            name=request.name or spec.name,
            owner="local",
            priority=request.priority,
            weight=request.weight if request.HasField("weight") else 1.0,
            spec=spec,
            campaign=request.campaign,
        )
        if request.validate_only:
            return design_service_pb2.SubmitJobResponse(job=job)
        key = f"local/{request.client_request_id}" if request.client_request_id else None
        keeper = await self._farm.submit(job_pb2.JobRecord(job=job), key)
        return design_service_pb2.SubmitJobResponse(job=keeper.job)

    async def GetJob(self, request, context):  # noqa: N802
        keeper = await self._find(request.job, context)
        return design_service_pb2.GetJobResponse(job=keeper.job)

    async def ListJobs(self, request, context):  # noqa: N802
        jobs = [keeper.job for keeper in self._farm.jobs.values()]
        jobs.sort(key=lambda job: (job.create_time.ToNanoseconds(), job.id), reverse=True)
        return design_service_pb2.ListJobsResponse(jobs=jobs)

    async def PauseJob(self, request, context):  # noqa: N802
        keeper = await self._find(request.job, context)
        await keeper.change(lambda draft: draft.move(PAUSING))
        self._farm.runs[keeper.job_id].look()
        return design_service_pb2.PauseJobResponse(job=keeper.job)

    async def CancelJob(self, request, context):  # noqa: N802
        keeper = await self._find(request.job, context)
        await keeper.change(lambda draft: draft.move(CANCELLING))
        self._farm.runs[keeper.job_id].look()
        return design_service_pb2.CancelJobResponse(job=keeper.job)

    async def WatchJob(
        self, request, context
    ) -> AsyncIterator[design_service_pb2.WatchJobResponse]:  # noqa: N802
        keeper = await self._find(request.job, context)
        after = request.after_revision
        yield design_service_pb2.WatchJobResponse(job=keeper.job)
        while True:
            state, events = keeper.job.state, keeper.feed.after(after) or []
            for event in events:
                yield design_service_pb2.WatchJobResponse(event=event)
                after = event.revision
            if state in FINAL or state == PAUSED:
                break
            await keeper.feed.news(1.0)
            yield design_service_pb2.WatchJobResponse(job=keeper.job)
        yield design_service_pb2.WatchJobResponse(job=keeper.job)

    async def _find(self, name: str, context: Context) -> JobKeeper:
        for keeper in self._farm.jobs.values():
            if name in (keeper.job_id, keeper.job.name):
                return keeper
        await context.abort(grpc.StatusCode.NOT_FOUND, f"there is no job {name!r}")
        raise AssertionError
