"""One job as this coordinator knows it, and the only way in which it is changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from google.protobuf.timestamp_pb2 import Timestamp

from remy_farm.v1 import job_pb2
from remy_services.coordinator.errors import JobLost
from remy_services.coordinator.feed import Feed
from remy_services.coordinator.threads import Threads
from remy_services.jobs.draft import Draft
from remy_services.stores import (
    CheckpointStore,
    Commit,
    Conflict,
    Fenced,
    JobMissing,
    StoredJob,
    StoreUnavailable,
)

_FIRST_RETRY_SECONDS = 0.1
_LONGEST_RETRY_SECONDS = 5.0


@dataclass(frozen=True)
class Checkpointed:
    """What a commit keeps of a designer."""

    snapshot: bytes
    schema_version: int
    #: New epochs, serialized, by number.
    epochs: Mapping[int, bytes] = field(default_factory=dict)


class JobKeeper:
    """Holds a job's record as it was last committed, and commits changes one after another.

    What is seen here has been committed: it is durable, as far as the store is.
    """

    def __init__(
        self,
        store: CheckpointStore,
        threads: Threads,
        stored: StoredJob,
        now: Callable[[], Timestamp],
    ) -> None:
        self._store = store
        self._threads = threads
        self._now = now
        self._token: int | None = None
        self._lock = asyncio.Lock()
        self._changes: set[asyncio.Task[None]] = set()
        self.record = job_pb2.JobRecord.FromString(stored.record)
        self.feed = Feed(stored.revision)
        #: Why commits are not being made at present; empty if they are.
        self.trouble = ""

    @property
    def job_id(self) -> str:
        return self.record.job.id

    @property
    def job(self) -> job_pb2.Job:
        """The job as it was last committed; not to be modified."""
        return self.record.job

    @property
    def is_held(self) -> bool:
        """Whether this coordinator may change the job."""
        return self._token is not None

    async def hold(self, holder: str) -> None:
        """Takes the job from whichever coordinator had it, and reads it anew."""
        token = await self._threads.store(self._store.acquire, self.job_id, holder)
        stored = await self._threads.store(self._store.job, self.job_id)
        self.record = job_pb2.JobRecord.FromString(stored.record)
        self.feed.skip_to(stored.revision)
        self._token = token

    async def change(
        self, edit: Callable[[Draft], None], checkpointed: Checkpointed | None = None
    ) -> None:
        """Commits what `edit` makes of the present record, and publishes it.

        Whatever `edit` raises comes out, and nothing was changed. Waits for as long as the store is
        not available. Raises JobLost once another coordinator has the job.
        """
        # Whoever asked may leave; a commit that was begun is seen through.
        task = asyncio.create_task(self._change(edit, checkpointed))
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        await asyncio.shield(task)

    async def close(self) -> None:
        """Gives up commits that the store does not take."""
        for task in list(self._changes):
            task.cancel()
        await asyncio.gather(*self._changes, return_exceptions=True)

    async def _change(
        self, edit: Callable[[Draft], None], checkpointed: Checkpointed | None
    ) -> None:
        async with self._lock:
            draft = Draft(self.record, self._now())
            edit(draft)
            if draft.events:
                await self._commit(draft, checkpointed)

    async def _commit(self, draft: Draft, checkpointed: Checkpointed | None) -> None:
        if self._token is None:
            raise JobLost(f"job {self.job_id} belongs to another coordinator")
        commit = Commit(
            record=draft.record.SerializeToString(),
            events=[event.SerializeToString() for event in draft.events],
            snapshot=checkpointed.snapshot if checkpointed else None,
            schema_version=checkpointed.schema_version if checkpointed else 0,
            epochs=checkpointed.epochs if checkpointed else {},
        )
        try:
            await self._until_made(commit)
        except (Fenced, JobMissing) as error:
            self._token = None
            self.feed.wake()
            raise JobLost(str(error)) from error
        self.record = draft.record
        self.feed.publish(draft.events)

    async def _until_made(self, commit: Commit) -> None:
        revision = self.record.job.revision
        pause_seconds = _FIRST_RETRY_SECONDS
        assert self._token is not None
        while True:
            try:
                await self._threads.store(
                    self._store.commit, self.job_id, self._token, revision, commit
                )
            except StoreUnavailable as error:
                self.trouble = str(error)
                self.feed.wake()
                await asyncio.sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, _LONGEST_RETRY_SECONDS)
            except Conflict as conflict:
                # The answer to an earlier attempt was lost.
                if conflict.revision != revision + len(commit.events):
                    raise
                break
            else:
                break
        self.trouble = ""
