"""Keeps what a desk has to say: now and then, and whenever the job's state changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from remy_farm.v1 import job_pb2
from remy_services.coordinator.keeping import Checkpointed, Environment, JobKeeper
from remy_services.coordinator.keeping.job_keeper import Edit
from remy_services.coordinator.running.desk import Desk
from remy_services.coordinator.running.resume import SCHEMA_VERSION
from remy_services.coordinator.running.settings import RunSettings
from remy_services.jobs.draft import Draft
from remy_services.stores import StoreError, retire_snapshots


class Saver:
    """Commits go on beside the next step; one at a time, at most one in `checkpoint_seconds`."""

    def __init__(
        self,
        environment: Environment,
        keeper: JobKeeper,
        desk: Desk,
        write_live: Callable[[job_pb2.JobProgress], None],
        settings: RunSettings,
        *,
        refused: Iterable[int],
        on_failure: Callable[[], None],
    ) -> None:
        """`write_live` sets what only the run's clocks know of its progress; `refused` are the
        revisions of damaged snapshots that the history tells of. `on_failure` is called when a
        commit beside the steps has failed for good; `keep_up` raises what went wrong."""
        self._environment = environment
        self._keeper = keeper
        self._desk = desk
        self._write_live = write_live
        self._checkpoint_seconds = settings.checkpoint_seconds
        self._snapshots_kept = settings.snapshots_kept
        self._told_of = set(refused)
        self._on_failure = on_failure
        self._one_at_a_time = asyncio.Lock()
        self._last_saved = time.monotonic()
        self._task: asyncio.Task[None] | None = None

    def note(self) -> None:
        """The desk has news: has them committed when it is time."""
        if self._task is None and self._desk.has_news:
            self._task = asyncio.create_task(self._save_while_there_is_news())
            self._task.add_done_callback(self._ended)

    async def keep_up(self) -> None:
        """Returns at once, unless a commit takes so long that the next one is due: then waits for
        it, so that no more than that can be lost. Raises what became of the commit."""
        task = self._task
        if task is None:
            return
        if not task.done():
            overdue = self._last_saved + 2 * self._checkpoint_seconds - time.monotonic()
            await asyncio.wait({task}, timeout=None if overdue <= 0 else 0)
        if task.done():
            self._task = None
            task.result()

    async def save(self, edit: Edit) -> None:
        """Commits everything now, together with a change. What `edit` raises comes out."""
        async with self._one_at_a_time:
            await self._save(edit)

    async def close(self) -> None:
        """Begins no more commits."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._on_failure()

    async def _save_while_there_is_news(self) -> None:
        while self._desk.has_news:
            await asyncio.sleep(self._last_saved + self._checkpoint_seconds - time.monotonic())
            async with self._one_at_a_time:
                if self._desk.has_news:
                    await self._save(lambda draft: None)

    async def _save(self, edit: Edit) -> None:
        batch = await self._desk.batch()

        def whole(draft: Draft) -> None:
            recoveries = draft.job.progress.recoveries
            draft.job.progress.CopyFrom(batch.progress)
            draft.job.progress.recoveries = recoveries
            self._write_live(draft.job.progress)
            draft.made_progress(batch.events)
            edit(draft)

        epochs = {epoch.record.epoch: epoch for epoch in batch.epochs}
        await self._keeper.change(whole, Checkpointed(batch.snapshot, SCHEMA_VERSION, epochs))
        self._desk.forget(batch)
        self._last_saved = time.monotonic()
        await self._retire()

    async def _retire(self) -> None:
        """Old snapshots go once the new one has been read back and is what was committed."""
        token = self._keeper.token
        if token is None:
            return
        environment = self._environment
        try:
            damaged = await environment.threads.store(
                retire_snapshots,
                environment.store,
                self._keeper.job_id,
                token,
                keep=self._snapshots_kept,
            )
        except StoreError:
            # The next commit will find out what it means, and snapshots can wait.
            return
        news = [each for each in damaged if each.revision not in self._told_of]
        self._told_of.update(each.revision for each in news)

        def tell(draft: Draft) -> None:
            for each in news:
                draft.refused_snapshot(each.revision, each.why)

        await self._keeper.change(tell)
