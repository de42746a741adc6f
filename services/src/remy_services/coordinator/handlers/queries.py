"""Handlers of the calls that read: jobs, lists, epochs, tables, comparisons and watches."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version

from remy_farm.designer import OtherVersionError
from remy_farm.remycc import RemyCC, reference_config, to_bytes
from remy_farm.specification.models import designed_tables
from remy_farm.specification.schema import show
from remy_proto.completion import complete
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2, rule_table_pb2
from remy_services.coordinator.access import current_caller
from remy_services.coordinator.checkpointing import SnapshotsLost, restore_designer
from remy_services.coordinator.farm import Farm
from remy_services.coordinator.job_handle import JobHandle
from remy_services.coordinator.maintenance import StoreWatch
from remy_services.coordinator.refusals import (
    failed_precondition,
    invalid_field,
    not_found,
    unavailable,
)
from remy_services.jobs.requests import differences, paginate
from remy_services.jobs.states import FINAL, PENDING
from remy_services.stores.contract import Durability, Snapshot, newest_snapshot
from remy_services.transport.grpc import SimulatorIdentity
from remy_simulator import InvalidTable
from remy_simulator.messages import from_native, to_native


def check_is_design(job: job_pb2.Job) -> None:
    """Raises CallRefused for an evaluation job."""
    if job.HasField("evaluation"):
        raise failed_precondition(
            "JOB_KIND",
            job.id,
            f"job {job.id} is an evaluation job, which has no specification, budgets or tables",
        )


async def find_design(farm: Farm, name: str) -> JobHandle:
    """Like `Catalogue.find`, but raises CallRefused for an evaluation job."""
    handle = await farm.catalogue.find(name)
    check_is_design(handle.job)
    return handle


async def epoch_tables(farm: Farm, handle: JobHandle, epoch: int) -> list[rule_table_pb2.RuleTable]:
    """Returns the tables at the end of an epoch, in the specification's order.

    Raises CallRefused or StoreUnavailable.
    """
    environment = farm.environment
    data = await environment.threads.store(environment.store.epoch, handle.job_id, epoch)
    if data is None:
        raise not_found(
            "remy_farm.v1.JobEpoch",
            f"{handle.job_id}/{epoch}",
            f"job {handle.job_id} has no epoch {epoch}; it has completed "
            f"{handle.job.progress.epoch} epochs, numbered from 0",
        )
    return _tables_of(data)


def _tables_of(data: bytes) -> list[rule_table_pb2.RuleTable]:
    epoch = job_pb2.JobEpoch.FromString(data)
    return [epoch.table, *epoch.companions]


async def newest_tables(farm: Farm, handle: JobHandle) -> list[rule_table_pb2.RuleTable]:
    """Returns the best tables so far, in the specification's order.

    Raises CallRefused or StoreUnavailable.
    """
    environment = farm.environment
    snapshot, _ = await environment.threads.store(newest_snapshot, environment.store, handle.job_id)
    if snapshot is None and not handle.job.progress.epoch:
        raise failed_precondition(
            "JOB_HAS_NO_TABLE",
            handle.job_id,
            f"job {handle.job_id} has no table yet; its first step has not finished",
        )
    try:
        return await environment.threads.compute(_published, handle.record, snapshot)
    except (SnapshotsLost, OtherVersionError):
        epochs = await environment.threads.store(environment.store.epochs, handle.job_id)
        if not epochs:
            raise
        return _tables_of(epochs[max(epochs)])


def _published(
    record: job_pb2.JobRecord, snapshot: Snapshot | None
) -> list[rule_table_pb2.RuleTable]:
    return [*map(from_native, restore_designer(record, snapshot, ()).tables.values())]


_PAGE_SIZE = 100
_LARGEST_PAGE = 1000
_MOST_COMPARED = 100


async def get_job(farm: Farm, request: messages.GetJobRequest) -> messages.GetJobResponse:
    """Returns one job."""
    handle = await farm.catalogue.find(request.job)
    if handle.token is None:
        farm.catalogue.refresh_soon()
    return messages.GetJobResponse(job=farm.shown(handle))


async def list_jobs(farm: Farm, request: messages.ListJobsRequest) -> messages.ListJobsResponse:
    """Returns a page of jobs."""
    complete(request)
    if not 0 <= request.page_size <= _LARGEST_PAGE:
        raise invalid_field(
            "page_size", f"is {request.page_size}, but must be 0 to {_LARGEST_PAGE}"
        )
    farm.catalogue.refresh_soon()
    handles = {handle.job_id: handle for handle in farm.catalogue}
    page = paginate(
        (handle.job for handle in handles.values()),
        request,
        size=request.page_size or _PAGE_SIZE,
        token=request.page_token,
    )
    return messages.ListJobsResponse(
        jobs=[farm.shown(handles[job.id], with_spec=False) for job in page.jobs],
        next_page_token=page.next_token,
    )


async def list_epochs(
    farm: Farm, request: messages.ListEpochsRequest
) -> messages.ListEpochsResponse:
    """Returns a job's epochs without their tables."""
    handle = await farm.catalogue.find(request.job)
    if handle.job.HasField("evaluation"):
        return messages.ListEpochsResponse()
    environment = farm.environment
    stored = await environment.threads.store(environment.store.epochs, handle.job_id)
    return messages.ListEpochsResponse(epochs=_without_tables(stored))


async def list_worker_lines(
    farm: Farm, request: messages.ListWorkerLinesRequest
) -> messages.ListWorkerLinesResponse:
    """Returns the newest log lines of a job's workers."""
    handle = await farm.catalogue.find(request.job)
    lines = farm.evaluator.worker_lines(handle.job_id)
    return messages.ListWorkerLinesResponse(
        lines=[messages.WorkerLine(**asdict(line)) for line in lines]
    )


async def get_remycc(farm: Farm, request: messages.GetRemyCCRequest) -> messages.GetRemyCCResponse:
    """Returns a job's table as the bytes of a file."""
    complete(request)
    handle = await find_design(farm, request.job)
    names = designed_tables(handle.job.spec)
    if request.table and request.table not in names:
        raise invalid_field(
            "table", f"is {show(request.table)}, but must be one of {', '.join(names)}"
        )
    if request.HasField("epoch"):
        tables = await epoch_tables(farm, handle, request.epoch)
    else:
        tables = await newest_tables(farm, handle)
    table = tables[names.index(request.table) if request.table else 0]
    remycc = RemyCC(to_native(table), reference_config(handle.job.spec))
    match request.format:
        case messages.REMY_CC_FORMAT_UNSPECIFIED | messages.REMY_CC_FORMAT_JSON:
            content = to_bytes(remycc, ".json")
        case messages.REMY_CC_FORMAT_DNA:
            try:
                content = to_bytes(remycc, ".dna")
            except InvalidTable as error:
                raise invalid_field("format", f"is .dna, but {str(error).rstrip('.')}") from error
        case _:
            raise invalid_field("format", f"is {request.format}, which is not a known format")
    return messages.GetRemyCCResponse(
        content=content, sha256=hashlib.sha256(content).digest(), rules=remycc.table.rule_count
    )


async def compare_jobs(
    farm: Farm, request: messages.CompareJobsRequest
) -> messages.CompareJobsResponse:
    """Returns several jobs and the settings in which they differ."""
    if not 1 <= len(request.jobs) <= _MOST_COMPARED:
        problem = f"has {len(request.jobs)} entries, but must have 1 to {_MOST_COMPARED}"
        raise invalid_field("jobs", problem)
    handles = [await find_design(farm, name) for name in request.jobs]
    rows = await farm.environment.threads.compute(
        differences, [handle.job.spec for handle in handles]
    )
    return messages.CompareJobsResponse(
        jobs=[farm.shown(handle, with_spec=False) for handle in handles], differences=rows
    )


def _without_tables(stored: Mapping[int, bytes]) -> list[job_pb2.JobEpoch]:
    epochs = [job_pb2.JobEpoch.FromString(stored[number]) for number in sorted(stored)]
    for epoch in epochs:
        epoch.ClearField("table")
        epoch.ClearField("companions")
    return epochs


_SECONDS_BETWEEN_JOBS = 1.0
_EVENTS_PER_PAGE = 500


async def watch_job(
    farm: Farm, request: messages.WatchJobRequest
) -> AsyncIterator[messages.WatchJobResponse]:
    """Streams a job until it reaches a final state.

    Sends the job at once, about once a second and at the end, and in between every history event
    after `after_revision`, in order and exactly once.
    """
    handle = await farm.catalogue.find(request.job)
    after = request.after_revision
    if after > handle.feed.revision:
        raise invalid_field(
            "after_revision", f"is {after}, but the newest revision is {handle.feed.revision}"
        )
    yield messages.WatchJobResponse(job=farm.shown(handle))
    shown_at = time.monotonic()
    while True:
        if farm.closing:
            raise unavailable(farm.closing)
        # Both are read together: a job that is final now has no events after `end`.
        is_final, end = handle.job.state in FINAL, handle.feed.revision
        async for event in _events(farm, handle, after, end):
            yield messages.WatchJobResponse(event=event)
        after = end
        if is_final:
            break
        due = shown_at + _SECONDS_BETWEEN_JOBS - time.monotonic()
        if due <= 0:
            yield messages.WatchJobResponse(job=farm.shown(handle))
            shown_at = time.monotonic()
        elif handle.feed.revision == after:
            if handle.token is None:
                farm.catalogue.refresh_soon()
            await handle.feed.wait_for_change(due)
    yield messages.WatchJobResponse(job=farm.shown(handle))


async def _events(
    farm: Farm, handle: JobHandle, after: int, end: int
) -> AsyncIterator[job_pb2.JobEvent]:
    """Yields the events after revision `after` up to and including `end`."""
    environment = farm.environment
    while after < end:
        events = handle.feed.after(after)
        if events is None:
            page = await environment.threads.store(
                environment.store.events, handle.job_id, after=after, limit=_EVENTS_PER_PAGE
            )
            events = [job_pb2.JobEvent.FromString(data) for _, data in page]
        for event in events:
            if event.revision > end:
                return
            yield event
            after = event.revision


@dataclass(frozen=True)
class ServerInformation:
    """Answers GetServerInfo."""

    farm: Farm
    store_watch: StoreWatch
    durability: Durability
    simulator: SimulatorIdentity

    def response(self) -> messages.GetServerInfoResponse:
        """Builds the response for the current caller."""
        farm, caller, durability = self.farm, current_caller(), self.durability
        trouble = self.store_watch.trouble
        return messages.GetServerInfoResponse(
            version=version("remy-farm"),
            simulator_version=self.simulator.version,
            simulator_digest=self.simulator.digest,
            scale_free_digest=self.simulator.scale_free_digest,
            protocols_digest=self.simulator.protocols_digest,
            path_model_digest=self.simulator.path_model_digest,
            network_signals_digest=self.simulator.network_signals_digest,
            coordinator=farm.environment.name,
            unix_seconds=time.time(),
            store=messages.StoreInfo(
                kind=durability.kind,
                version=durability.version,
                durability=durability.description,
                durable=durability.durable,
                available=not trouble,
                trouble=trouble,
            ),
            evaluators=messages.EvaluatorsInfo(**asdict(farm.evaluator.status())),
            caller=caller.name,
            role=caller.role,
            running_jobs=farm.scheduler.running,
            waiting_jobs=sum(handle.job.state == PENDING for handle in farm.catalogue),
        )
