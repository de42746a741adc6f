"""Has the jobs run whose turn it is."""

from __future__ import annotations

import asyncio

from remy_services.coordinator.catalogue import Catalogue
from remy_services.coordinator.keeping import Environment, JobKeeper
from remy_services.coordinator.running import JobRun, RunSettings
from remy_services.evaluation import SharedEvaluator
from remy_services.jobs.queue import Contender, Limits, whose_turn
from remy_services.jobs.states import PENDING, RECOVERING, RUNNING, SCHEDULING

_CONTENDING = frozenset({PENDING, RECOVERING, SCHEDULING, RUNNING})
_GAVE_WAY = "gave way to a job of higher priority, and waits for its turn"


class Scheduler:
    """Runs begin, give way and end as jobs come, change and go."""

    def __init__(
        self,
        environment: Environment,
        catalogue: Catalogue,
        evaluator: SharedEvaluator,
        settings: RunSettings,
        limits: Limits,
    ) -> None:
        self._environment = environment
        self._catalogue = catalogue
        self._evaluator = evaluator
        self._settings = settings
        self._limits = limits
        self._runs: dict[str, JobRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._is_closing = False

    @property
    def limits(self) -> Limits:
        return self._limits

    @property
    def running(self) -> int:
        """Jobs that are at work."""
        return len(self._runs)

    def running_of(self, owner: str) -> int:
        """Those of one owner."""
        return sum(
            keeper.job.owner == owner for keeper in self._catalogue if keeper.job_id in self._runs
        )

    def run_of(self, job_id: str) -> JobRun | None:
        """The job's run; None if it is not at work here."""
        return self._runs.get(job_id)

    def look(self) -> None:
        """A job has come, changed or gone."""
        for each in self._runs.values():
            each.look()
        if self._is_closing:
            return
        turns = whose_turn(self._contenders(), self._limits)
        for keeper in self._catalogue:
            run = self._runs.get(keeper.job_id)
            if run is None and keeper.job_id in turns:
                self._begin(keeper)
            elif run is not None and keeper.job_id not in turns and _contends(keeper):
                run.leave(_GAVE_WAY)

    async def close(self, why: str, timeout_seconds: float) -> None:
        """Has all runs keep what they have and end; those that cannot in time are cut off, which
        costs no more than a crash."""
        self._is_closing = True
        for run in self._runs.values():
            run.leave(why)
        tasks = set(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=timeout_seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, keeper: JobKeeper) -> None:
        run = JobRun(self._environment, keeper, self._evaluator, self._settings)
        self._runs[keeper.job_id] = run
        self._tasks[keeper.job_id] = asyncio.create_task(self._run(keeper, run))

    async def _run(self, keeper: JobKeeper, run: JobRun) -> None:
        try:
            await run.run()
        finally:
            del self._runs[keeper.job_id]
            del self._tasks[keeper.job_id]
            self.look()

    def _contenders(self) -> list[Contender]:
        return [
            Contender(
                keeper.job_id,
                keeper.job.owner,
                keeper.job.priority,
                keeper.job.create_time.ToNanoseconds(),
                keeper.job_id in self._runs,
            )
            for keeper in self._catalogue
            if _contends(keeper)
        ]


def _contends(keeper: JobKeeper) -> bool:
    return keeper.token is not None and keeper.job.state in _CONTENDING
