"""A coordinator without its server: jobs, who evaluates for them, and when they run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from remy_farm.v1 import job_pb2, spec_pb2
from remy_services.coordinator.catalogue import Catalogue
from remy_services.coordinator.keeping import Environment, JobKeeper
from remy_services.coordinator.keeping.job_keeper import Edit
from remy_services.coordinator.scheduler import Scheduler
from remy_services.coordinator.settings import FarmSettings
from remy_services.evaluation import SharedEvaluator
from remy_services.jobs.states import ACTIVE, FINAL, PENDING, WAITING

_LOOK_AROUND_SECONDS = 30.0


class Farm:
    """What calls are answered from."""

    def __init__(
        self,
        environment: Environment,
        evaluator: SharedEvaluator,
        settings: FarmSettings,
    ) -> None:
        """The farm does not close the evaluator."""
        self.environment = environment
        self.evaluator = evaluator
        self.settings = settings
        #: Why jobs cannot be asked for at present; empty if they can.
        self.not_ready = "the jobs are being read from the store"
        #: Watches and transfers that are being answered.
        self.open_streams = 0
        #: Why nothing may be changed any more; empty while it may.
        self.closing = ""
        #: What there is to say of the workers that were started for jobs, by the jobs' ids.
        self.said_of_workers: Mapping[str, str] = {}
        #: What of a specification this farm cannot do, in one sentence; None if it can do all.
        self.objection: Callable[[spec_pb2.DesignSpec], str | None] = lambda _: None
        self._looking_around: asyncio.Task[None] | None = None
        self.catalogue = Catalogue(environment, lambda: self.scheduler.look())
        self.scheduler = Scheduler(
            environment, self.catalogue, evaluator, settings.runs, settings.jobs
        )

    async def load(self) -> None:
        """Takes up the jobs in the store, and has them run. Waits for the store."""
        await self.catalogue.load(self._in_trouble)
        self.not_ready = ""
        self.scheduler.look()
        self._looking_around = asyncio.create_task(self._look_around())

    async def change(self, keeper: JobKeeper, edit: Edit) -> None:
        """Changes a job for somebody, and has that take effect.

        What `edit` raises comes out. Raises JobLost for a job that another coordinator is at work
        on, StoreInTrouble and StoreError.
        """
        if keeper.token is None and keeper.job.state in FINAL:
            await keeper.hold()
        await keeper.change_soon(edit)
        self.scheduler.look()

    async def delete(self, keeper: JobKeeper) -> None:
        """Removes a job. Raises JobLost or StoreError."""
        if keeper.token is None and keeper.job.state in FINAL:
            await keeper.hold()
        await keeper.delete()
        self.catalogue.remove(keeper.job_id)
        self.scheduler.look()

    def shown(self, keeper: JobKeeper, *, with_spec: bool = True) -> job_pb2.Job:
        """The job as it is committed, with what is known of it at this moment."""
        job = job_pb2.Job()
        job.CopyFrom(keeper.job)
        if not with_spec:
            job.ClearField("spec")
        # A run that is ending has committed all that there is to say.
        run = self.scheduler.run_of(keeper.job_id) if job.state in ACTIVE else None
        if run is not None:
            run.write_live(job.progress)
        if keeper.trouble:
            job.status_message = f"waits for the store: {keeper.trouble}"
        elif run is not None and job.state not in FINAL and job.id in self.said_of_workers:
            job.status_message = self.said_of_workers[job.id]
        elif run is not None and self.evaluator.info().threads == 0:
            job.status_message = "waits for workers: none is connected"
        elif keeper.token is not None and job.state == PENDING and not job.status_message:
            job.status_message = self._why_it_waits(job.owner)
        return job

    def has_work(self, job_id: str) -> bool:
        """Whether a job, or any if `job_id` is empty, may still have something to evaluate."""
        # Workers that come back before the jobs are read have not been forgotten.
        return bool(self.not_ready) or any(
            keeper.token is not None and keeper.job.state in WAITING | ACTIVE
            for keeper in self.catalogue
            if job_id in ("", keeper.job_id)
        )

    async def close(self, why: str, timeout_seconds: float) -> None:
        """Has all jobs keep what they have. `why` is for people."""
        self.closing = why
        for keeper in self.catalogue:
            keeper.feed.wake()
        if self._looking_around is not None:
            self._looking_around.cancel()
        await self.scheduler.close(why, timeout_seconds)
        await self.catalogue.close()

    async def _look_around(self) -> None:
        """Finds jobs whose coordinator ended before it could take them."""
        while True:
            await asyncio.sleep(_LOOK_AROUND_SECONDS)
            self.catalogue.refresh_soon()

    def _in_trouble(self, why: str) -> None:
        self.not_ready = f"the jobs cannot be read from the store: {why}"

    def _why_it_waits(self, owner: str) -> str:
        limits = self.scheduler.limits
        if self.scheduler.running >= limits.running_jobs:
            return f"waits for its turn: as many jobs run as may at once ({limits.running_jobs})"
        most = limits.running_jobs_per_owner
        if self.scheduler.running_of(owner) >= most:
            return f"waits for its turn: {owner} runs as many jobs as one may at once ({most})"
        return ""
