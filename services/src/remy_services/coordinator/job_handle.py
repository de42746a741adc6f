"""Job handle: a job's last committed record, serialized commits, and its event feed."""

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
from remy_services.coordinator.maintenance import MirrorWriter, Threads
from remy_services.coordinator.refusals import JobLost, StoreDegraded
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
    """Returns the wall-clock time."""
    timestamp = Timestamp()
    timestamp.FromNanoseconds(time.time_ns())
    return timestamp


_Result = TypeVar("_Result")

_MIN_BACKOFF_SECONDS = 0.1
_MAX_BACKOFF_SECONDS = 5.0


async def retry_until_available(
    call: Callable[[], Awaitable[_Result]], *, on_trouble: Callable[[str], None]
) -> _Result:
    """Calls `call` until it does not raise StoreUnavailable, with exponential backoff.

    `on_trouble` gets the error message of each failed attempt.
    """
    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception_type(StoreUnavailable),
        wait=tenacity.wait_exponential(_MIN_BACKOFF_SECONDS, max=_MAX_BACKOFF_SECONDS),
        before_sleep=lambda state: on_trouble(str(failure_of(state))),
    )

    async def attempt() -> _Result:
        return await call()

    return await retrying(attempt)


@dataclass(frozen=True)
class Environment:
    """Dependencies of job handles and runs: store, threads, clocks, observer, mirror."""

    store: CheckpointStore
    threads: Threads
    #: Wall clock.
    clock: Callable[[], Timestamp]
    observer: JobObserver
    #: Name of this coordinator, recorded in the store as the holder of each job's token.
    name: str
    #: Writes jobs to the mirror; None disables mirroring.
    mirror: MirrorWriter | None = None
    #: Measures the wall-clock time that designs run.
    monotonic: Clock = time.monotonic


_RECENT_EVENTS = 500


class Feed:
    """Buffers the newest events of a job's history and wakes the watchers of the job."""

    def __init__(self, revision: int) -> None:
        #: Revision of the newest event.
        self.revision = revision
        self._recent: deque[job_pb2.JobEvent] = deque(maxlen=_RECENT_EVENTS)
        self._changed = asyncio.Event()

    def publish(self, events: Sequence[job_pb2.JobEvent]) -> None:
        """Appends committed events and wakes the watchers."""
        self._recent.extend(events)
        self.revision = events[-1].revision
        self.wake()

    def skip_to(self, revision: int) -> None:
        """Drops the buffer because another coordinator has advanced the history to `revision`."""
        if revision != self.revision:
            self._recent.clear()
            self.revision = revision
            self.wake()

    def clear(self) -> None:
        """Empties the buffer. Watchers then read the history from the store."""
        self._recent.clear()

    def wake(self) -> None:
        """Wakes all watchers."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def after(self, revision: int) -> list[job_pb2.JobEvent] | None:
        """Returns the events after `revision`, or None if the buffer has already dropped some."""
        if revision >= self.revision:
            return []
        if not self._recent or self._recent[0].revision > revision + 1:
            return None
        skipped = revision + 1 - self._recent[0].revision
        return [event for number, event in enumerate(self._recent) if number >= skipped]

    async def wait_for_change(self, timeout_seconds: float) -> None:
        """Waits until the next `wake`, or until the timeout."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), timeout_seconds)


#: Applies a change to a draft.
Edit = Callable[[Draft], None]


#: Version of the snapshot format. The sealed checkpoint inside has its own version.
SCHEMA_VERSION = 1


def to_commit(draft: Draft) -> Commit:
    """Converts a draft to a store commit."""
    return Commit(
        draft.record.SerializeToString(),
        [event.SerializeToString() for event in draft.events],
        snapshot=draft.snapshot,
        schema_version=SCHEMA_VERSION,
        epochs={epoch.record.epoch: epoch.SerializeToString() for epoch in draft.epochs},
    )


class JobHandle:
    """A job's last committed record and the only way to change it.

    Readers see committed state only. Commits are serialized by a lock and fenced by the token.
    """

    def __init__(
        self, environment: Environment, stored: StoredJob, *, arrived_seconds: int = 0
    ) -> None:
        self._environment = environment
        #: Unix time at which this coordinator first saw the job; 0 if it was loaded at startup.
        self.arrived_seconds = arrived_seconds
        #: Read-only.
        self.record = complete(job_pb2.JobRecord.FromString(stored.record))
        #: Fencing token of this coordinator; None while another coordinator may hold the job.
        self.token: int | None = None
        self._lock = asyncio.Lock()
        self._changes: set[asyncio.Task[None]] = set()
        #: Wakes watchers after each commit and after changes of `trouble`.
        self.feed = Feed(stored.revision)
        #: Why the last commit attempt failed; empty while commits succeed.
        self.trouble = ""

    @property
    def job_id(self) -> str:
        return self.record.job.id

    @property
    def job(self) -> job_pb2.Job:
        """Read-only; every commit replaces it."""
        return self.record.job

    async def acquire(self) -> None:
        """Acquires the job with a new fencing token. Raises StoreError."""
        store, threads = self._environment.store, self._environment.threads
        async with self._lock:
            token = await threads.store(store.acquire, self.job_id, self._environment.name)
            self._adopt(await threads.store(store.job, self.job_id))
            self.token = token

    def refresh(self, stored: StoredJob) -> None:
        """Adopts a newer record written by another coordinator, unless this one holds the job."""
        if self.token is None and stored.revision > self.feed.revision:
            self._adopt(stored)

    async def change(self, edit: Edit) -> None:
        """Applies `edit` to a draft of the record and commits it.

        If `edit` raises, nothing changes and the exception is passed on. Retries while the store
        is unavailable. Raises JobLost if this coordinator does not hold the job.
        """
        # The commit must complete even if the caller is cancelled.
        task = asyncio.create_task(self._change(edit))
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        await asyncio.shield(task)

    async def try_change(self, edit: Edit) -> None:
        """Like `change`, but raises StoreDegraded at once if the last commit attempt failed."""
        if self.trouble:
            raise StoreDegraded(self.trouble)
        await self.change(edit)

    async def delete(self) -> None:
        """Deletes the job from the store and the mirror. Raises StoreError or JobLost."""
        store = self._environment.store
        async with self._lock:
            if self.token is None:
                raise JobLost(f"job {self.job_id} is held by another coordinator")
            await self._environment.threads.store(store.delete, self.job_id, self.token)
            self.token = None
        self.feed.wake()
        if self._environment.mirror is not None:
            self._environment.mirror.remove(self.job_id)

    async def retire(self, mirror: MirrorWriter) -> str | None:
        """Moves the job from the store to the mirror. Returns None, or why the job stays.


        Raises StoreError.
        """
        if self.token is None:
            await self.acquire()
        async with self._lock:
            # Holding the lock prevents commits between the mirror write and the deletion.
            if self.token is None or self.job.state not in FINAL:
                return "the job is running again"
            if (problem := await mirror.save_now(self.job_id)) is not None:
                return problem
            store = self._environment.store
            await self._environment.threads.store(store.delete, self.job_id, self.token)
            self.token = None
        self.feed.wake()
        return None

    def on_store_unavailable(self, why: str) -> None:
        """Records why the store is unavailable. The failed call is retried by its caller."""
        if not self.trouble:
            self._environment.observer.on_store_unavailable(self.job_id, why)
        self.trouble = why
        self.feed.wake()

    def on_store_recovered(self) -> None:
        """Clears `trouble` after a successful store call."""
        if self.trouble:
            self.trouble = ""
            self._environment.observer.on_store_recovered(self.job_id)
            self.feed.wake()

    async def close(self) -> None:
        """Cancels pending commits."""
        for task in self._changes:
            task.cancel()
        await asyncio.gather(*self._changes, return_exceptions=True)

    async def _change(self, edit: Edit) -> None:
        async with self._lock:
            if self.token is None:
                raise JobLost(f"job {self.job_id} is held by another coordinator")
            draft = Draft(self.record, self._environment.clock())
            edit(draft)
            if not draft.events:
                return
            commit, token = to_commit(draft), self.token
            try:
                await retry_until_available(
                    lambda: self._commit(commit, token), on_trouble=self.on_store_unavailable
                )
            except (Fenced, JobMissing) as error:
                self.token = None
                self._environment.observer.lost(self.job_id, str(error))
                self.feed.wake()
                raise JobLost(str(error)) from error
            self._on_committed(draft)
            mirror = self._environment.mirror
            # Outcomes of evaluation parts are not mirrored before the end: they can be recomputed.
            is_milestone = draft.epochs and not self.job.HasField("evaluation")
            if mirror is not None and (self.job.state in FINAL or is_milestone):
                mirror.save(self.job_id)

    async def _commit(self, commit: Commit, token: int) -> None:
        """Makes one commit attempt."""
        environment, revision = self._environment, self.job.revision
        try:
            await environment.threads.store(
                environment.store.commit, self.job_id, token, revision, commit
            )
        except Conflict as conflict:
            # Only the holder of the newest token commits. If the revision is the expected result,
            # an earlier attempt succeeded and its response was lost.
            if conflict.revision != revision + len(commit.events):
                raise

    def _on_committed(self, draft: Draft) -> None:
        before, self.record = self.job.state, draft.record
        observer = self._environment.observer
        self.on_store_recovered()
        self.feed.publish(draft.events)
        for event in draft.events:
            if event.HasField("progress"):
                observer.progressed(self.job, event.progress)
        if self.job.state in FINAL:
            self.feed.clear()
        if self.job.state != before:
            observer.state_changed(self.job, before)

    def _adopt(self, stored: StoredJob) -> None:
        self.record = complete(job_pb2.JobRecord.FromString(stored.record))
        self.feed.skip_to(stored.revision)
