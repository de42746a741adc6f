"""WatchJob: a job's history, and what happens next."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

from remy_farm.v1 import design_service_pb2 as messages
from remy_farm.v1 import job_pb2
from remy_services.coordinator.answering.refusal import bad_field, unavailable
from remy_services.coordinator.farm import Farm
from remy_services.coordinator.keeping import JobKeeper
from remy_services.jobs.states import FINAL

_SECONDS_BETWEEN_JOBS = 1.0
_EVENTS_PER_PAGE = 500


async def watch_job(
    farm: Farm, request: messages.WatchJobRequest
) -> AsyncIterator[messages.WatchJobResponse]:
    """The job, its history after a revision without a gap or a repeat, the job about once a second,
    and the job when it has reached a final state."""
    keeper = await farm.catalogue.find(request.job)
    after = request.after_revision
    if after > keeper.feed.revision:
        raise bad_field(
            "after_revision", f"is {after}, but the history ends with {keeper.feed.revision}"
        )
    yield messages.WatchJobResponse(job=farm.shown(keeper))
    shown_at = time.monotonic()
    while True:
        if farm.closing:
            raise unavailable(farm.closing)
        # What is final now has no events that are not counted now.
        is_final, end = keeper.job.state in FINAL, keeper.feed.revision
        async for event in _events(farm, keeper, after, end):
            yield messages.WatchJobResponse(event=event)
        after = end
        if is_final:
            break
        due = shown_at + _SECONDS_BETWEEN_JOBS - time.monotonic()
        if due <= 0:
            yield messages.WatchJobResponse(job=farm.shown(keeper))
            shown_at = time.monotonic()
        elif keeper.feed.revision == after:
            if keeper.token is None:
                farm.catalogue.refresh_soon()
            await keeper.feed.news(due)
    yield messages.WatchJobResponse(job=farm.shown(keeper))


async def _events(
    farm: Farm, keeper: JobKeeper, after: int, end: int
) -> AsyncIterator[job_pb2.JobEvent]:
    """The events above `after`, up to and with `end`."""
    environment = farm.environment
    while after < end:
        events = keeper.feed.after(after)
        if events is None:
            page = await environment.threads.store(
                environment.store.events, keeper.job_id, after=after, limit=_EVENTS_PER_PAGE
            )
            events = [job_pb2.JobEvent.FromString(data) for _, data in page]
        for event in events:
            if event.revision > end:
                return
            yield event
            after = event.revision
