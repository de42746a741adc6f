"""All jobs of a coordinator."""

from __future__ import annotations

import asyncio
import secrets
import time

from google.protobuf.timestamp_pb2 import Timestamp

from remy_farm.v1 import job_pb2
from remy_services.coordinator.job_keeper import JobKeeper
from remy_services.coordinator.job_run import JobRun
from remy_services.coordinator.threads import Threads
from remy_services.evaluation import SharedEvaluator
from remy_services.jobs.draft import Draft
from remy_services.jobs.states import PENDING, SCHEDULING
from remy_services.stores import CheckpointStore, Commit


def now() -> Timestamp:
    stamp = Timestamp()
    stamp.FromNanoseconds(time.time_ns())
    return stamp


class Farm:
    """Keeps the jobs, and has those run whose turn it is."""

    def __init__(self, store: CheckpointStore, evaluator: SharedEvaluator, name: str) -> None:
        self.store = store
        self.threads = Threads()
        self._evaluator = evaluator
        self.name = name
        self.jobs: dict[str, JobKeeper] = {}
        self.runs: dict[str, JobRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, record: job_pb2.JobRecord, request_key: str | None) -> JobKeeper:
        record.job.id = f"{int(time.time()):08x}{secrets.token_hex(4)}"
        draft = Draft(record, now())
        draft.job.create_time.CopyFrom(now())
        draft.move(PENDING)
        commit = Commit(
            draft.record.SerializeToString(), [event.SerializeToString() for event in draft.events]
        )
        job_id = await self.threads.store(
            self.store.create, record.job.id, commit, request_key=request_key
        )
        if job_id not in self.jobs:
            stored = await self.threads.store(self.store.job, job_id)
            keeper = JobKeeper(self.store, self.threads, stored, now)
            await keeper.hold(self.name)
            self.jobs[job_id] = keeper
            task = asyncio.create_task(self._run(keeper))
            self._tasks.add(task)
        return self.jobs[job_id]

    async def _run(self, keeper: JobKeeper) -> None:
        await keeper.change(lambda draft: draft.move(SCHEDULING))
        run = self.runs[keeper.job_id] = JobRun(keeper, self._evaluator, self.threads)
        await run.run()
