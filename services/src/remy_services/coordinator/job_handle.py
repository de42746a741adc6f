"""Job handles: a job's last committed record, its changes in order, and who watches it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import tenacity
from google.protobuf.timestamp_pb2 import Timestamp

from remy_farm.driver.loop import Clock
from remy_proto.completion import complete
from remy_proto.v1 import job_pb2
from remy_rpc.retry import failure_of
from remy_services.coordinator.maintenance import BackupWriter, Threads
from remy_services.coordinator.refusals import JobLost, StoreInTrouble
from remy_services.jobs.states import FINAL, Draft, JobObserver
from remy_services.stores.contract import (
    CheckpointStore,
    Commit,
    Conflict,
    Fenced,
    JobMissing,
    StoredJob,
    StoreUnavailable,
)


def now() -> Timestamp:
    """The time of this machine's clock."""
    timestamp = Timestamp()
    timestamp.FromNanoseconds(time.time_ns())
    return timestamp


_Result = TypeVar("_Result")

_FIRST_WAIT_SECONDS = 0.1
_LONGEST_WAIT_SECONDS = 5.0


async def until_available(
    call: Callable[[], Awaitable[_Result]], *, on_trouble: Callable[[str], None]
) -> _Result:
    """The result of `call`, which is repeated for as long as it raises StoreUnavailable, after
    waits that grow. `on_trouble` is told why, each time."""
    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception_type(StoreUnavailable),
        wait=tenacity.wait_exponential(_FIRST_WAIT_SECONDS, max=_LONGEST_WAIT_SECONDS),
        before_sleep=lambda state: on_trouble(str(failure_of(state))),
    )

    async def attempt() -> _Result:
        return await call()

    return await retrying(attempt)


@dataclass(frozen=True)
class Environment:
    """Where jobs are kept, and what is needed to do so."""

    store: CheckpointStore
    threads: Threads
    #: Tells the time.
    clock: Callable[[], Timestamp]
    observer: JobObserver
    #: Of this coordinator, for people; stands in the store beside the jobs that it has taken.
    name: str
    #: A second place for jobs; None: there is none.
    backup: BackupWriter | None = None
    #: Measures how long designs run.
    monotonic: Clock = time.monotonic


_RECENT = 500


class Feed:
    """The newest events of a job's history, and a bell that rings when there is news."""

    def __init__(self, revision: int) -> None:
        #: Of the newest event.
        self.revision = revision
        self._recent: deque[job_pb2.JobEvent] = deque(maxlen=_RECENT)
        self._bell = asyncio.Event()

    def publish(self, events: Sequence[job_pb2.JobEvent]) -> None:
        """Adds the next events of the history."""
        self._recent.extend(events)
        self.revision = events[-1].revision
        self.wake()

    def skip_to(self, revision: int) -> None:
        """The history was continued elsewhere."""
        if revision != self.revision:
            self._recent.clear()
            self.revision = revision
            self.wake()

    def forget(self) -> None:
        """Keeps no events: the job is over, and its history is in the store."""
        self._recent.clear()

    def wake(self) -> None:
        """Has everybody look who waits for news."""
        bell, self._bell = self._bell, asyncio.Event()
        bell.set()

    def after(self, revision: int) -> list[job_pb2.JobEvent] | None:
        """The events above `revision`; None if they do not all lie here any more."""
        if revision >= self.revision:
            return []
        if not self._recent or self._recent[0].revision > revision + 1:
            return None
        skipped = revision + 1 - self._recent[0].revision
        return [event for number, event in enumerate(self._recent) if number >= skipped]

    async def news(self, timeout_seconds: float) -> None:
        """Returns at the next news, or when the time is up."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._bell.wait(), timeout_seconds)


#: Makes a change in a draft.
Edit = Callable[[Draft], None]


#: Version of what snapshots hold: the designer's sealed checkpoint, whose own version is inside.
SCHEMA_VERSION = 1


def commit_of(draft: Draft) -> Commit:
    """What a store keeps of a draft."""
    return Commit(
        draft.record.SerializeToString(),
        [event.SerializeToString() for event in draft.events],
        snapshot=draft.snapshot,
        schema_version=SCHEMA_VERSION,
        epochs={epoch.record.epoch: epoch.SerializeToString() for epoch in draft.epochs},
    )


class JobHandle:
    """What is seen here has been committed: it is as durable as the store makes it."""

    def __init__(
        self, environment: Environment, stored: StoredJob, *, arrived_seconds: int = 0
    ) -> None:
        self._environment = environment
        #: When it came to this coordinator, in Unix time; 0: it was there when that started.
        self.arrived_seconds = arrived_seconds
        #: Not to be modified.
        self.record = complete(job_pb2.JobRecord.FromString(stored.record))
        #: Fences off whoever had the job before; None while another coordinator may have it.
        self.token: int | None = None
        self._lock = asyncio.Lock()
        self._changes: set[asyncio.Task[None]] = set()
        #: Rings at every change, and when something is wrong.
        self.feed = Feed(stored.revision)
        #: Why commits are not being made at present; empty if they are.
        self.trouble = ""

    @property
    def job_id(self) -> str:
        return self.record.job.id

    @property
    def job(self) -> job_pb2.Job:
        """Not to be modified."""
        return self.record.job

    async def hold(self) -> None:
        """Takes the job from whichever coordinator had it. Raises StoreError."""
        store, threads = self._environment.store, self._environment.threads
        async with self._lock:
            token = await threads.store(store.acquire, self.job_id, self._environment.name)
            self._take(await threads.store(store.job, self.job_id))
            self.token = token

    def refresh(self, stored: StoredJob) -> None:
        """Another coordinator has changed the job, unless this one holds it."""
        if self.token is None and stored.revision > self.feed.revision:
            self._take(stored)

    async def change(self, edit: Edit) -> None:
        """Commits what `edit` makes of the present record; returns when it has been made.

        Whatever `edit` raises comes out, and nothing was changed. Waits for as long as the store is
        not available. Raises JobLost if this coordinator does not have the job.
        """
        # Whoever asked may leave; a commit that was begun is seen through.
        task = asyncio.create_task(self._change(edit))
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
            if self.token is None:
                raise JobLost(f"job {self.job_id} belongs to another coordinator")
            await self._environment.threads.store(store.delete, self.job_id, self.token)
            self.token = None
        self.feed.wake()
        if self._environment.backup is not None:
            self._environment.backup.remove(self.job_id)

    async def retire(self, backup: BackupWriter) -> str | None:
        """Has the mirror alone keep the job; None, or one sentence about why it stays.

        Raises StoreError.
        """
        if self.token is None:
            await self.hold()
        async with self._lock:
            # Nobody changes it meanwhile.
            if self.token is None or self.job.state not in FINAL:
                return "it is at work again"
            if (problem := await backup.save_now(self.job_id)) is not None:
                return problem
            store = self._environment.store
            await self._environment.threads.store(store.delete, self.job_id, self.token)
            self.token = None
        self.feed.wake()
        return None

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

    async def _change(self, edit: Edit) -> None:
        async with self._lock:
            if self.token is None:
                raise JobLost(f"job {self.job_id} belongs to another coordinator")
            draft = Draft(self.record, self._environment.clock())
            edit(draft)
            if not draft.events:
                return
            commit, token = commit_of(draft), self.token
            try:
                await until_available(
                    lambda: self._commit(commit, token), on_trouble=self.in_trouble
                )
            except (Fenced, JobMissing) as error:
                self.token = None
                self._environment.observer.lost(self.job_id, str(error))
                self.feed.wake()
                raise JobLost(str(error)) from error
            self._made(draft)
            backup = self._environment.backup
            # Parts of an evaluation are many, and can be had again.
            is_milestone = draft.epochs and not self.job.HasField("evaluation")
            if backup is not None and (self.job.state in FINAL or is_milestone):
                backup.save(self.job_id)

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
        before, self.record = self.job.state, draft.record
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

    def _take(self, stored: StoredJob) -> None:
        self.record = complete(job_pb2.JobRecord.FromString(stored.record))
        self.feed.skip_to(stored.revision)
