"""All jobs that this coordinator knows: those that it holds, and those of others in its store."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Iterator

import structlog

from remy_farm.v1 import job_pb2
from remy_services.coordinator.errors import RequestIdTaken
from remy_services.coordinator.keeping import Environment, JobKeeper
from remy_services.coordinator.keeping.patience import patiently
from remy_services.jobs.crashes import after_crash
from remy_services.jobs.draft import Draft
from remy_services.jobs.naming import NoSuchJob, find_job, new_job_id
from remy_services.jobs.states import FINAL, PENDING
from remy_services.stores import Commit, JobExists, StoredJob, StoreUnavailable

_log = structlog.get_logger()

_RANDOM_BYTES = 8
# What other coordinators do shows within about this time.
_REFRESH_SECONDS = 2.0


class Catalogue:
    """Jobs by id. The store is read whole at the beginning, and again now and then."""

    def __init__(self, environment: Environment, on_taken: Callable[[], None]) -> None:
        """`on_taken` is told when a job was found that nobody had taken."""
        self._environment = environment
        self._on_taken = on_taken
        self._keepers: dict[str, JobKeeper] = {}
        self._adding = asyncio.Lock()
        self._refreshed = 0.0
        self._refresh: asyncio.Task[None] | None = None

    def __iter__(self) -> Iterator[JobKeeper]:
        return iter(list(self._keepers.values()))

    async def load(self, on_trouble: Callable[[str], None]) -> None:
        """Reads the store, and takes all jobs that are not finished from whoever had them.

        Waits for as long as the store is not available, and tells why.
        """
        store, threads = self._environment.store, self._environment.threads
        stored = await patiently(lambda: threads.store(store.jobs), on_trouble=on_trouble)
        for each in stored:
            keeper = JobKeeper(self._environment, each)
            if keeper.job.state not in FINAL:
                await patiently(keeper.hold, on_trouble=on_trouble)
                await keeper.change(after_crash)
            self._keepers[each.job_id] = keeper
        self._refreshed = time.monotonic()

    async def find(self, name: str) -> JobKeeper:
        """The job of this id or name. Raises NoSuchJob, AmbiguousName or StoreUnavailable."""
        try:
            return self._keepers[self._id_of(name)]
        except NoSuchJob:
            await self.refresh()
            return self._keepers[self._id_of(name)]

    async def submit(
        self, record: job_pb2.JobRecord, request_key: str | None
    ) -> tuple[JobKeeper, bool]:
        """A new job, and True; or the one that a request of this key made before, and False.

        Sets what the record lacks: id, time and state. Raises RequestIdTaken if that request was
        another one, and StoreUnavailable.
        """
        store, threads = self._environment.store, self._environment.threads
        while True:
            draft = self._new(record)
            events = [event.SerializeToString() for event in draft.events]
            commit = Commit(draft.record.SerializeToString(), events)
            try:
                job_id = await threads.store(
                    store.create, draft.job.id, commit, request_key=request_key
                )
            except JobExists:
                continue
            break
        if job_id not in self._keepers:
            await self._add(await threads.store(store.job, job_id))
        keeper = self._keepers[job_id]
        check_same_request(keeper, record.request_sha256)
        return keeper, job_id == draft.job.id

    def made_by(self, owner: str, request_id: str) -> JobKeeper | None:
        """The job that an owner's request of this id made; None if it is not known here."""
        for keeper in self:
            if keeper.record.client_request_id == request_id and keeper.job.owner == owner:
                return keeper
        return None

    def remove(self, job_id: str) -> None:
        """The job was deleted."""
        self._keepers.pop(job_id, None)

    def refresh_soon(self) -> None:
        """Looks at what other coordinators have done, unless that was a moment ago."""
        if self._refresh is None and time.monotonic() - self._refreshed >= _REFRESH_SECONDS:
            self._refresh = asyncio.create_task(self._refresh_quietly())

    async def refresh(self) -> None:
        """Reads the store whole. Raises StoreUnavailable."""
        environment = self._environment
        stored = await environment.threads.store(environment.store.jobs)
        self._refreshed = time.monotonic()
        known = {each.job_id for each in stored}
        for job_id, keeper in list(self._keepers.items()):
            if job_id not in known and keeper.token is None:
                del self._keepers[job_id]
        for each in stored:
            if each.job_id in self._keepers:
                self._keepers[each.job_id].refresh(each)
            else:
                await self._add(each)

    async def close(self) -> None:
        """Gives up whatever the store does not take."""
        if self._refresh is not None:
            self._refresh.cancel()
        await asyncio.gather(*(keeper.close() for keeper in self))

    async def _add(self, stored: StoredJob) -> None:
        async with self._adding:
            if stored.job_id in self._keepers:
                return
            keeper = JobKeeper(self._environment, stored)
            # Submitted here, or by a coordinator that ended before it could take its job.
            is_free = stored.token == 0 and keeper.job.state not in FINAL
            if is_free:
                await keeper.hold()
            self._keepers[stored.job_id] = keeper
        if is_free:
            self._on_taken()

    async def _refresh_quietly(self) -> None:
        try:
            with contextlib.suppress(StoreUnavailable):
                await self.refresh()
        except Exception as error:
            _log.error("the list of jobs could not be read again", exc_info=error)
        finally:
            self._refresh = None

    def _id_of(self, name: str) -> str:
        if name in self._keepers:
            return name
        return find_job((keeper.job for keeper in self), name)

    def _new(self, record: job_pb2.JobRecord) -> Draft:
        now = self._environment.clock()
        draft = Draft(record, now)
        draft.job.id = new_job_id(now.seconds, secrets.token_bytes(_RANDOM_BYTES))
        draft.job.create_time.CopyFrom(now)
        draft.move(PENDING)
        return draft


def check_same_request(keeper: JobKeeper, request_sha256: bytes) -> None:
    """Raises RequestIdTaken unless the job was made by a request of this hash."""
    if keeper.record.request_sha256 != request_sha256:
        raise RequestIdTaken(
            f"client_request_id {keeper.record.client_request_id!r} made job {keeper.job_id} by "
            f"another request; every request needs an id of its own"
        )
