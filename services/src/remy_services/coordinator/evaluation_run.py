"""One run of an evaluation job: requests that do not depend on one another, several at a time.

Parts are kept in their order, so that a number says which are: the job's steps. What a stop loses
is what was under way. A part that another job here has had evaluated is taken over from it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from remy_farm.designer import OtherVersionError
from remy_farm.designer.budgets import Elapsed
from remy_farm.driver.loop import Stopwatch, changed_or_done
from remy_farm.evaluation.interface import EvaluationProgress, SharedEvaluator
from remy_proto.v1 import evaluation_pb2, job_pb2, progress_pb2
from remy_services.coordinator.checkpointing import RunSettings, suspended
from remy_services.coordinator.job_handle import Edit, Environment, JobHandle, until_available
from remy_services.coordinator.job_run import JobRun, schedule
from remy_services.jobs.progress import RateMeter, cost
from remy_services.jobs.states import (
    CANCELLING,
    PAUSING,
    PENDING,
    RECOVERING,
    RUNNING,
    SCHEDULING,
    SUCCEEDED,
    Draft,
)
from remy_services.transport.grpc import SimulatorIdentity

# A part is some ten seconds of one processor: with one for each thread, and some that wait, workers
# have always something to do.
_PARTS_BEYOND_THREADS: Final = 2
_MOST_PARTS_AT_ONCE: Final = 32

#: Where the outcomes of parts are: by the part's hash, a job's id and the number of its part.
KeptParts = Mapping[bytes, tuple[str, int]]


@dataclass(frozen=True)
class _Outcome:
    """What a part came to, and what it took."""

    content: bytes
    evaluations: int = 0
    packets: int = 0
    cpu_seconds: float = 0.0


def _taken_up(coordinator: str) -> Edit:
    def edit(draft: Draft) -> None:
        if draft.job.state == RECOVERING:
            draft.recovered(draft.job.progress.step, coordinator)
        if draft.job.state in (SCHEDULING, RECOVERING):
            draft.move(RUNNING)

    return edit


def _finished(draft: Draft) -> None:
    draft.finish(progress_pb2.STOP_REASON_EVALUATED, SUCCEEDED)


class EvaluationRun(JobRun):
    """Has the parts of one job evaluated."""

    def __init__(
        self,
        environment: Environment,
        handle: JobHandle,
        evaluator: SharedEvaluator,
        settings: RunSettings,
        kept: Callable[[], KeptParts],
    ) -> None:
        """`kept` says what other jobs have had evaluated."""
        super().__init__(environment, handle, evaluator, settings)
        self._kept = kept
        now = handle.job.progress
        self._packets = [part.packets for part in handle.job.evaluation.parts]
        self._stopwatch = Stopwatch(
            Elapsed(now.wall_seconds, now.cpu_seconds), environment.monotonic
        )
        self._meter = RateMeter(time.monotonic(), now.evaluations, now.simulated_packets)
        # By part: what is being evaluated, how far it is, and what is not yet committed.
        self._tasks: dict[int, asyncio.Task[_Outcome]] = {}
        self._reported: dict[int, EvaluationProgress] = {}
        self._began_with = self._packets_done(now.step)
        self._began_at = time.monotonic()
        self._saved_at = 0.0

    def write_live(self, progress: progress_pb2.JobProgress) -> None:
        now = time.monotonic()
        rates, elapsed = self._meter.rates(now), self._stopwatch.elapsed()
        progress.evaluations_per_second = rates.evaluations
        progress.packets_per_second = rates.packets
        progress.workers = self._meter.workers(now)
        progress.cpu_seconds, progress.wall_seconds = elapsed.cpu_seconds, elapsed.wall_seconds
        if self._settings.price_per_cpu_hour is not None:
            progress.estimated_cost = cost(elapsed.cpu_seconds, self._settings.price_per_cpu_hour)
        done, total = self._packets_done(progress.step), sum(self._packets)
        progress.share_done = min(done / total, 1.0) if total > 0 else 0.0
        progress.ClearField("eta_seconds")
        if done > self._began_with:
            pace = (done - self._began_with) / (now - self._began_at)
            progress.eta_seconds = max(total - done, 0.0) / pace

    async def _run(self) -> None:
        handle, environment = self._handle, self._environment
        if handle.job.state == PENDING:
            await handle.change(schedule)
        if handle.job.evaluation.simulator_sha256 != SimulatorIdentity.own().sha256:
            raise OtherVersionError(
                "the job is for a simulator with other results than this coordinator's; submit it "
                "again"
            )
        await handle.change(_taken_up(environment.name))
        kept = self._kept()
        while handle.token is not None:
            if self._why_leave or handle.job.state in (PAUSING, CANCELLING):
                await self._save(suspended(self._why_leave))
                return
            if handle.job.progress.step == len(self._packets):
                await handle.change(_finished)
                return
            self._begin(kept)
            await self._wait()
            if self._is_due():
                await self._save(lambda draft: None)

    def _begin(self, kept: KeptParts) -> None:
        """Has the next parts evaluated, as many as there is somebody for."""
        threads = self._evaluator.status().threads
        free = min(threads + _PARTS_BEYOND_THREADS, _MOST_PARTS_AT_ONCE) - len(self._running())
        first = self._handle.job.progress.step
        # Behind a part that takes long others are evaluated, and wait for it.
        to_come = range(first, min(first + _MOST_PARTS_AT_ONCE, len(self._packets)))
        for number in [each for each in to_come if each not in self._tasks][: max(free, 0)]:
            self._tasks[number] = asyncio.create_task(self._evaluate(number, kept))

    def _running(self) -> set[asyncio.Task[_Outcome]]:
        return {task for task in self._tasks.values() if not task.done()}

    async def _wait(self) -> None:
        """Returns when something has changed, a part has been evaluated, or a commit is due."""
        due = None
        if self._ready():
            due = max(self._saved_at + self._settings.checkpoint_seconds - time.monotonic(), 0.0)
        await changed_or_done(self.changed, self._running(), due)

    def _ready(self) -> list[_Outcome]:
        """Of the parts that come next in their order. Raises what went wrong with one."""
        outcomes = []
        number = self._handle.job.progress.step
        while number in self._tasks and self._tasks[number].done():
            outcomes.append(self._tasks[number].result())
            number += 1
        return outcomes

    def _is_due(self) -> bool:
        ready = self._ready()
        is_last = self._handle.job.progress.step + len(ready) == len(self._packets)
        waited = time.monotonic() - self._saved_at
        return bool(ready) and (is_last or waited >= self._settings.checkpoint_seconds)

    async def _save(self, edit: Edit) -> None:
        """Commits the parts that have been evaluated, together with a change."""
        ready = self._ready()
        first = self._handle.job.progress.step

        def whole(draft: Draft) -> None:
            if ready:
                draft.evaluated(first, [each.content for each in ready])
                draft.job.progress.evaluations += sum(each.evaluations for each in ready)
                draft.job.progress.simulated_packets += sum(each.packets for each in ready)
            self.write_live(draft.job.progress)
            edit(draft)

        await self._handle.change(whole)
        for number in range(first, first + len(ready)):
            self._tasks.pop(number)
            self._reported.pop(number, None)
        self._saved_at = time.monotonic()

    async def _evaluate(self, number: int, kept: KeptParts) -> _Outcome:
        """Raises what an evaluator does."""
        handle = self._handle
        place = kept.get(handle.job.evaluation.parts[number].sha256)
        found = None if place is None else await self._read(*place)
        if found is not None and found.outcome:
            return _Outcome(found.outcome)
        part = await self._read(handle.job_id, number)
        assert part is not None, "a job's parts are there from the beginning"
        request = evaluation_pb2.EvaluationRequest.FromString(part.request)

        def report(progress: EvaluationProgress) -> None:
            self._reported[number] = progress
            done = handle.job.progress
            self._meter.reached(
                time.monotonic(),
                done.evaluations + sum(each.simulations_done for each in self._reported.values()),
                done.simulated_packets
                + sum(each.simulated_packets for each in self._reported.values()),
            )

        share = self._share(handle.job.progress.simulated_packets)
        evaluation = await self._evaluator.evaluate(share, request, report)
        self._stopwatch.add_cpu(evaluation.cpu_seconds)
        self._meter.worked(time.monotonic(), evaluation.workers)
        sent = evaluation.outcome.packets_sent
        content = evaluation.outcome.SerializeToString(deterministic=True)
        return _Outcome(content, len(sent), sum(sent), evaluation.cpu_seconds)

    async def _read(self, job_id: str, number: int) -> job_pb2.EvaluatedPart | None:
        """None if the job, which may be another one, is not there any more."""
        environment = self._environment
        data = await until_available(
            lambda: environment.threads.store(environment.store.epoch, job_id, number),
            on_trouble=self._handle.in_trouble,
        )
        self._handle.well_again()
        return None if data is None else job_pb2.JobEpoch.FromString(data).part

    async def _close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _packets_done(self, step: int) -> float:
        """After so many parts, as they count them, with what is done of those under way."""
        under_way = sum(
            self._packets[number] * each.simulations_done / max(each.simulations, 1)
            for number, each in self._reported.items()
            if number >= step
        )
        return sum(self._packets[:step]) + under_way
