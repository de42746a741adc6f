"""Calls that show jobs: GetJob, ListJobs, ListEpochs, GetRemyCC and CompareJobs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from remy_farm.v1 import design_service_pb2 as messages
from remy_farm.v1 import job_pb2
from remy_services.coordinator.answering.refusal import bad_field
from remy_services.coordinator.calls.tables import epoch_table, newest_table
from remy_services.coordinator.farm import Farm
from remy_services.jobs.differences import differences
from remy_services.jobs.listing import Filter, page_of
from remy_services.remycc import RemyCC, to_bytes
from remy_services.remycc.reference_config import reference_config
from remy_simulator.messages import to_native

_PAGE_SIZE = 100
_LARGEST_PAGE = 1000
_MOST_COMPARED = 100


async def get_job(farm: Farm, request: messages.GetJobRequest) -> job_pb2.Job:
    """One job."""
    keeper = await farm.catalogue.find(request.job)
    if keeper.token is None:
        farm.catalogue.refresh_soon()
    return farm.shown(keeper)


async def list_jobs(farm: Farm, request: messages.ListJobsRequest) -> messages.ListJobsResponse:
    """A page of jobs."""
    if not 0 <= request.page_size <= _LARGEST_PAGE:
        raise bad_field("page_size", f"is {request.page_size}, but must be 0 to {_LARGEST_PAGE}")
    farm.catalogue.refresh_soon()
    wanted = Filter(
        states=frozenset(request.states),
        owner=request.owner,
        name_contains=request.name_contains,
        campaign=request.campaign,
    )
    keepers = {keeper.job_id: keeper for keeper in farm.catalogue}
    page = page_of(
        (keeper.job for keeper in keepers.values()),
        wanted,
        size=request.page_size or _PAGE_SIZE,
        token=request.page_token,
    )
    return messages.ListJobsResponse(
        jobs=[farm.shown(keepers[job.id], with_spec=False) for job in page.jobs],
        next_page_token=page.next_token,
    )


async def list_epochs(
    farm: Farm, request: messages.ListEpochsRequest
) -> messages.ListEpochsResponse:
    """A job's epochs."""
    keeper = await farm.catalogue.find(request.job)
    environment = farm.environment
    stored = await environment.threads.store(environment.store.epochs, keeper.job_id)
    return messages.ListEpochsResponse(epochs=_without_tables(stored))


async def get_remycc(farm: Farm, request: messages.GetRemyCCRequest) -> messages.GetRemyCCResponse:
    """A job's table as a file."""
    keeper = await farm.catalogue.find(request.job)
    if request.HasField("epoch"):
        table = await epoch_table(farm, keeper, request.epoch)
    else:
        table = await newest_table(farm, keeper)
    remycc = RemyCC(to_native(table), reference_config(keeper.job.spec))
    match request.format:
        case messages.REMY_CC_FORMAT_UNSPECIFIED | messages.REMY_CC_FORMAT_JSON:
            content = to_bytes(remycc, ".json")
        case messages.REMY_CC_FORMAT_DNA:
            content = to_bytes(remycc, ".dna")
        case _:
            raise bad_field("format", f"is number {request.format}, which is no format")
    return messages.GetRemyCCResponse(
        content=content,
        sha256=hashlib.sha256(content).digest(),
        rules=remycc.table.rule_count,
    )


async def compare_jobs(
    farm: Farm, request: messages.CompareJobsRequest
) -> messages.CompareJobsResponse:
    """Jobs side by side."""
    if not 1 <= len(request.jobs) <= _MOST_COMPARED:
        problem = f"has {len(request.jobs)} entries, but must have 1 to {_MOST_COMPARED}"
        raise bad_field("jobs", problem)
    keepers = [await farm.catalogue.find(name) for name in request.jobs]
    rows = await farm.environment.threads.compute(
        differences, [keeper.job.spec for keeper in keepers]
    )
    return messages.CompareJobsResponse(
        jobs=[farm.shown(keeper, with_spec=False) for keeper in keepers],
        differences=[messages.SettingDifference(path=row.path, values=row.values) for row in rows],
    )


def _without_tables(stored: Mapping[int, bytes]) -> list[job_pb2.JobEpoch]:
    epochs = [job_pb2.JobEpoch.FromString(stored[number]) for number in sorted(stored)]
    for epoch in epochs:
        epoch.ClearField("table")
    return epochs
