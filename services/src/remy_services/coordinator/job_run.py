"""A job at work: its designer is asked, its requests are evaluated, what comes of it is kept."""

from __future__ import annotations

import asyncio
import contextlib
import time

from remy_farm.v1 import evaluation_pb2, job_pb2, progress_pb2
from remy_services.coordinator.job_keeper import Checkpointed, JobKeeper
from remy_services.coordinator.threads import Threads
from remy_services.designer import Designer
from remy_services.evaluation import Evaluation, Share, SharedEvaluator
from remy_services.jobs.draft import Draft
from remy_services.jobs.states import CANCELLED, CANCELLING, PAUSED, PAUSING, RUNNING, SUCCEEDED


class JobRun:
    """One stretch of a job's life between two waits."""

    def __init__(self, keeper: JobKeeper, evaluator: SharedEvaluator, threads: Threads) -> None:
        self._keeper = keeper
        self._evaluator = evaluator
        self._threads = threads
        self._look = asyncio.Event()
        self._unsaved: list[progress_pb2.ProgressEvent] = []

    def look(self) -> None:
        """The job's record has changed."""
        self._look.set()

    async def run(self) -> None:
        keeper = self._keeper
        designer = await self._threads.compute(Designer, keeper.job.spec)
        await self._save(designer, lambda draft: draft.move(RUNNING))
        while True:
            if keeper.job.state == PAUSING:
                await self._save(designer, lambda draft: draft.move(PAUSED))
                return
            if keeper.job.state == CANCELLING:
                self._unsaved += designer.stop(progress_pb2.STOP_REASON_CANCELLED)
            request = await self._threads.compute(designer.next_request)
            if request is None:
                break
            evaluation = await self._evaluate(request)
            if evaluation is None:
                continue
            self._unsaved += await self._threads.compute(designer.receive, evaluation.outcome)
            await self._save(designer, lambda draft: None)
        reason = designer.finished
        assert reason is not None
        final = CANCELLED if keeper.job.state == CANCELLING else SUCCEEDED
        await self._save(designer, lambda draft: draft.succeed(reason, final))

    async def _evaluate(self, request: evaluation_pb2.EvaluationRequest) -> Evaluation | None:
        job = self._keeper.job
        share = Share(job.id, job.priority, job.weight)
        task = asyncio.create_task(self._evaluator.evaluate(share, request))
        look = asyncio.create_task(self._look.wait())
        try:
            await asyncio.wait({task, look}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            self._look.clear()
            return None
        finally:
            for each in (task, look):
                each.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(task, look, return_exceptions=True)

    async def _save(self, designer: Designer, edit) -> None:  # type: ignore[no-untyped-def]
        events, self._unsaved = self._unsaved, []
        snapshot = await self._threads.compute(designer.checkpoint)

        def whole(draft: Draft) -> None:
            progress = draft.job.progress
            progress.step, progress.epoch = designer.steps, designer.epoch
            draft.made_progress(events)
            edit(draft)

        await self._keeper.change(whole, Checkpointed(snapshot, 1))
