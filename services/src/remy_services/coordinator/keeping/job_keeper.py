"""One job: its record as it was last committed, and its changes one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from remy_farm.v1 import job_pb2
from remy_services.coordinator.errors import JobLost, StoreInTrouble
from remy_services.coordinator.keeping.environment import Environment
from remy_services.coordinator.keeping.feed import Feed
from remy_services.coordinator.keeping.patience import patiently
from remy_services.jobs.draft import Draft
from remy_services.jobs.states import FINAL
from remy_services.stores import Commit, Conflict, Fenced, JobMissing, StoredJob

#: Makes a change in a draft.
Edit = Callable[[Draft], None]


@dataclass(frozen=True)
class Checkpointed:
    """What a commit keeps of a designer."""

    snapshot: bytes
    schema_version: int
    #: New epochs by number.
    epochs: Mapping[int, job_pb2.JobEpoch] = field(default_factory=dict)


class JobKeeper:
    """What is seen here has been committed: it is as durable as the store makes it."""

    def __init__(self, environment: Environment, stored: StoredJob) -> None:
        self._environment = environment
        self._record = job_pb2.JobRecord.FromString(stored.record)
        self._token: int | None = None
        self._lock = asyncio.Lock()
        self._changes: set[asyncio.Task[None]] = set()
        #: Rings at every change, and when something is wrong.
        self.feed = Feed(stored.revision)
        #: Why commits are not being made at present; empty if they are.
        self.trouble = ""

    @property
    def job_id(self) -> str:
        return self._record.job.id

    @property
    def record(self) -> job_pb2.JobRecord:
        """Not to be modified."""
        return self._record

    @property
    def job(self) -> job_pb2.Job:
        """Not to be modified."""
        return self._record.job

    @property
    def token(self) -> int | None:
        """Fences off whoever had the job before; None while another coordinator may have it."""
        return self._token

    async def hold(self) -> None:
        """Takes the job from whichever coordinator had it. Raises StoreError."""
        store, threads = self._environment.store, self._environment.threads
        async with self._lock:
            token = await threads.store(store.acquire, self.job_id, self._environment.name)
            self._take(await threads.store(store.job, self.job_id))
            self._token = token

    def refresh(self, stored: StoredJob) -> None:
        """Another coordinator has changed the job, unless this one holds it."""
        if self._token is None and stored.revision > self.feed.revision:
            self._take(stored)

    async def change(self, edit: Edit, checkpointed: Checkpointed | None = None) -> None:
        """Commits what `edit` makes of the present record; returns when it has been made.

        Whatever `edit` raises comes out, and nothing was changed. Waits for as long as the store is
        not available. Raises JobLost if this coordinator does not have the job.
        """
        # Whoever asked may leave; a commit that was begun is seen through.
        task = asyncio.create_task(self._change(edit, checkpointed))
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        await asyncio.shield(task)

    async def change_soon(self, edit: Edit) -> None:
        """The same for somebody who does not wait: raises StoreInTrouble, and changes nothing, if
        the store is known to take no commits."""
        if self.trouble:
            raise StoreInTrouble(self.trouble)
        await self.change(edit)

    async def delete(self) -> None:
        """Removes all of the job. Raises StoreError or JobLost."""
        store = self._environment.store
        async with self._lock:
            if self._token is None:
                raise JobLost(f"job {self.job_id} belongs to another coordinator")
            await self._environment.threads.store(store.delete, self.job_id, self._token)
            self._token = None
        self.feed.wake()
        if self._environment.mirroring is not None:
            self._environment.mirroring.remove(self.job_id)

    def in_trouble(self, why: str) -> None:
        """The store is not available, and is asked again and again."""
        if not self.trouble:
            self._environment.observer.store_in_trouble(self.job_id, why)
        self.trouble = why
        self.feed.wake()

    def well_again(self) -> None:
        """The store has done what it was asked for."""
        if self.trouble:
            self.trouble = ""
            self._environment.observer.store_well_again(self.job_id)
            self.feed.wake()

    async def close(self) -> None:
        """Gives up what the store does not take."""
        for task in self._changes:
            task.cancel()
        await asyncio.gather(*self._changes, return_exceptions=True)

    async def _change(self, edit: Edit, checkpointed: Checkpointed | None) -> None:
        async with self._lock:
            if self._token is None:
                raise JobLost(f"job {self.job_id} belongs to another coordinator")
            draft = Draft(self._record, self._environment.clock())
            edit(draft)
            if not draft.events:
                return
            commit, token = _commit_of(draft, checkpointed), self._token
            try:
                await patiently(lambda: self._commit(commit, token), on_trouble=self.in_trouble)
            except (Fenced, JobMissing) as error:
                self._token = None
                self._environment.observer.lost(self.job_id, str(error))
                self.feed.wake()
                raise JobLost(str(error)) from error
            self._made(draft)
            if self.job.state in FINAL or (checkpointed is not None and checkpointed.epochs):
                self._mirror()

    async def _commit(self, commit: Commit, token: int) -> None:
        """One attempt."""
        environment, revision = self._environment, self.job.revision
        try:
            await environment.threads.store(
                environment.store.commit, self.job_id, token, revision, commit
            )
        except Conflict as conflict:
            # Only whoever holds the newest token commits: an earlier attempt of ours was made, and
            # its answer was lost.
            if conflict.revision != revision + len(commit.events):
                raise

    def _made(self, draft: Draft) -> None:
        before, self._record = self.job.state, draft.record
        observer = self._environment.observer
        self.well_again()
        self.feed.publish(draft.events)
        for event in draft.events:
            if event.HasField("progress"):
                observer.progressed(self.job, event.progress)
        if self.job.state in FINAL:
            self.feed.forget()
        if self.job.state != before:
            observer.state_changed(self.job, before)

    def _mirror(self) -> None:
        if self._environment.mirroring is not None:
            self._environment.mirroring.save(self.job_id)

    def _take(self, stored: StoredJob) -> None:
        self._record = job_pb2.JobRecord.FromString(stored.record)
        self.feed.skip_to(stored.revision)


def _commit_of(draft: Draft, checkpointed: Checkpointed | None) -> Commit:
    record = draft.record.SerializeToString()
    events = [event.SerializeToString() for event in draft.events]
    if checkpointed is None:
        return Commit(record, events)
    return Commit(
        record,
        events,
        snapshot=checkpointed.snapshot,
        schema_version=checkpointed.schema_version,
        epochs={number: epoch.SerializeToString() for number, epoch in checkpointed.epochs.items()},
    )
