"""A run of an evaluation job: independent requests ("parts"), evaluated concurrently.

Outcomes are committed in order of their parts, so `progress.step` counts the committed ones. A stop
loses only the parts in progress. An outcome that another job on this farm has is reused.
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
from remy_services.coordinator.checkpointing import RunSettings, suspend_edit
from remy_services.coordinator.job_handle import Edit, Environment, JobHandle, retry_until_available
from remy_services.coordinator.job_run import JobRun, begin_scheduling
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

# A part takes about ten CPU seconds. One part per thread plus a few queued ones keep workers busy.
_QUEUED_PARTS: Final = 2
_MAX_CONCURRENT_PARTS: Final = 32

#: Location of finished outcomes: (job id, part number) by request hash.
EvaluatedParts = Mapping[bytes, tuple[str, int]]


@dataclass(frozen=True)
class _Outcome:
    """A part's serialized outcome and its cost."""

    content: bytes
    evaluations: int = 0
    packets: int = 0
    cpu_seconds: float = 0.0


def _start_edit(coordinator: str) -> Edit:
    def edit(draft: Draft) -> None:
        if draft.job.state == RECOVERING:
            draft.record_recovery(draft.job.progress.step, coordinator)
        if draft.job.state in (SCHEDULING, RECOVERING):
            draft.move(RUNNING)

    return edit


def _finish(draft: Draft) -> None:
    draft.finish(progress_pb2.STOP_REASON_EVALUATED, SUCCEEDED)


class EvaluationRun(JobRun):
    """Runs an evaluation job."""

    def __init__(
        self,
        environment: Environment,
        handle: JobHandle,
        evaluator: SharedEvaluator,
        settings: RunSettings,
        finished_parts: Callable[[], EvaluatedParts],
    ) -> None:
        """`finished_parts` returns the outcomes that other jobs already have."""
        super().__init__(environment, handle, evaluator, settings)
        self._finished_parts = finished_parts
        now = handle.job.progress
        self._packets = [part.packets for part in handle.job.evaluation.parts]
        self._stopwatch = Stopwatch(
            Elapsed(now.wall_seconds, now.cpu_seconds), environment.monotonic
        )
        self._meter = RateMeter(time.monotonic(), now.evaluations, now.simulated_packets)
        # By part number: started evaluations whose outcome is not committed, and their progress.
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
            await handle.change(begin_scheduling)
        if handle.job.evaluation.simulator_sha256 != SimulatorIdentity.own().sha256:
            raise OtherVersionError(
                "the job was submitted for a simulator whose results differ from this "
                "coordinator's; submit it again"
            )
        await handle.change(_start_edit(environment.name))
        finished_parts = self._finished_parts()
        while handle.token is not None:
            if self._suspend_reason or handle.job.state in (PAUSING, CANCELLING):
                await self._save(suspend_edit(self._suspend_reason))
                return
            if handle.job.progress.step == len(self._packets):
                await handle.change(_finish)
                return
            self._begin(finished_parts)
            await self._wait()
            if self._is_due():
                await self._save(lambda draft: None)

    def _begin(self, finished_parts: EvaluatedParts) -> None:
        """Starts the next parts, as many as there are free threads."""
        threads = self._evaluator.status().threads
        free = min(threads + _QUEUED_PARTS, _MAX_CONCURRENT_PARTS) - len(self._running())
        first = self._handle.job.progress.step
        # Parts behind a slow one are evaluated too; their outcomes wait to be committed in order.
        to_come = range(first, min(first + _MAX_CONCURRENT_PARTS, len(self._packets)))
        for number in [each for each in to_come if each not in self._tasks][: max(free, 0)]:
            self._tasks[number] = asyncio.create_task(self._evaluate(number, finished_parts))

    def _running(self) -> set[asyncio.Task[_Outcome]]:
        return {task for task in self._tasks.values() if not task.done()}

    async def _wait(self) -> None:
        """Waits until the job changes, a part is finished, or a commit is due."""
        due = None
        if self._ready():
            due = max(self._saved_at + self._settings.checkpoint_seconds - time.monotonic(), 0.0)
        await changed_or_done(self.changed, self._running(), due)

    def _ready(self) -> list[_Outcome]:
        """Returns the finished outcomes that are next in order.

        Raises the error of a failed part.
        """
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
        """Commits the ready outcomes together with a change."""
        ready = self._ready()
        first = self._handle.job.progress.step

        def apply(draft: Draft) -> None:
            if ready:
                draft.add_outcomes(first, [each.content for each in ready])
                draft.job.progress.evaluations += sum(each.evaluations for each in ready)
                draft.job.progress.simulated_packets += sum(each.packets for each in ready)
            self.write_live(draft.job.progress)
            edit(draft)

        await self._handle.change(apply)
        for number in range(first, first + len(ready)):
            self._tasks.pop(number)
            self._reported.pop(number, None)
        self._saved_at = time.monotonic()

    async def _evaluate(self, number: int, finished_parts: EvaluatedParts) -> _Outcome:
        """Returns a part's outcome, reused or evaluated. Raises the evaluator's errors."""
        handle = self._handle
        place = finished_parts.get(handle.job.evaluation.parts[number].sha256)
        found = None if place is None else await self._read(*place)
        if found is not None and found.outcome:
            return _Outcome(found.outcome)
        part = await self._read(handle.job_id, number)
        assert part is not None, "a job's parts are stored when it is created"
        request = evaluation_pb2.EvaluationRequest.FromString(part.request)

        def report(progress: EvaluationProgress) -> None:
            self._reported[number] = progress
            done = handle.job.progress
            self._meter.record_totals(
                time.monotonic(),
                done.evaluations + sum(each.simulations_done for each in self._reported.values()),
                done.simulated_packets
                + sum(each.simulated_packets for each in self._reported.values()),
            )

        share = self._share(handle.job.progress.simulated_packets)
        evaluation = await self._evaluator.evaluate(share, request, report)
        self._stopwatch.add_cpu(evaluation.cpu_seconds)
        self._meter.record_workers(time.monotonic(), evaluation.workers)
        sent = evaluation.outcome.packets_sent
        content = evaluation.outcome.SerializeToString(deterministic=True)
        return _Outcome(content, len(sent), sum(sent), evaluation.cpu_seconds)

    async def _read(self, job_id: str, number: int) -> job_pb2.EvaluatedPart | None:
        """Reads a part of this or another job; None if that job has been deleted."""
        environment = self._environment
        data = await retry_until_available(
            lambda: environment.threads.store(environment.store.epoch, job_id, number),
            on_trouble=self._handle.on_store_unavailable,
        )
        self._handle.on_store_recovered()
        return None if data is None else job_pb2.JobEpoch.FromString(data).part

    async def _close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _packets_done(self, step: int) -> float:
        """Returns the stated packets of the first `step` parts plus those done in later parts."""
        in_progress = sum(
            self._packets[number] * each.simulations_done / max(each.simulations, 1)
            for number, each in self._reported.items()
            if number >= step
        )
        return sum(self._packets[:step]) + in_progress
