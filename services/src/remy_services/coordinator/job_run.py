"""A job's run: from the start of scheduling until the job ends or is suspended."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from remy_farm.designer import Designer, OtherVersionError
from remy_farm.designer.budgets import Elapsed
from remy_farm.driver.loop import DesignSession, Directive, RunLoop, Stopwatch
from remy_farm.evaluation.interface import (
    PacketLimitReached,
    ResultsDiffer,
    Share,
    SharedEvaluator,
    TaskQuarantined,
)
from remy_proto.v1 import job_pb2, progress_pb2
from remy_services.coordinator.checkpointing import (
    LiveProgress,
    RunSettings,
    SnapshotsLost,
    StoreCheckpointer,
    first_table,
    restore_designer,
    suspend_edit,
)
from remy_services.coordinator.job_handle import Edit, Environment, JobHandle, retry_until_available
from remy_services.coordinator.refusals import JobLost
from remy_services.jobs.states import (
    ACTIVE,
    CANCELLING,
    FAILED,
    PAUSING,
    PENDING,
    RECOVERING,
    RUNNING,
    SCHEDULING,
    Draft,
)
from remy_services.stores.contract import RefusedSnapshot, newest_snapshot
from remy_simulator import InvalidRequest

_log = structlog.get_logger()

_REASONS: tuple[tuple[type[Exception], job_pb2.FailureReason], ...] = (
    (SnapshotsLost, job_pb2.FAILURE_REASON_SNAPSHOTS_LOST),
    (OtherVersionError, job_pb2.FAILURE_REASON_OTHER_VERSION),
    (TaskQuarantined, job_pb2.FAILURE_REASON_TASK_QUARANTINED),
    (ResultsDiffer, job_pb2.FAILURE_REASON_RESULTS_DIFFER),
    (InvalidRequest, job_pb2.FAILURE_REASON_REQUEST_REFUSED),
    (PacketLimitReached, job_pb2.FAILURE_REASON_WORK_LIMIT),
)


def reason_for(error: Exception) -> tuple[job_pb2.FailureReason, str]:
    """Returns the failure reason and a sentence for users. Unexpected errors are logged."""
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason, str(error)
    error_id = secrets.token_hex(4)
    _log.error("a job failed unexpectedly", error_id=error_id, exc_info=error)
    return job_pb2.FAILURE_REASON_INTERNAL, f"internal error, id {error_id} in the log"


_EVENTS_PER_PAGE = 1000


async def _last_sequence(environment: Environment, handle: JobHandle, revision: int) -> int:
    """Returns the sequence number of the last progress event after `revision`.

    The steps after the snapshot of that revision run again, and their events are already in the
    history.
    """
    store, threads = environment.store, environment.threads
    last, after = 0, revision
    while True:
        page = await retry_until_available(
            lambda after=after: threads.store(  # type: ignore[misc]
                store.events, handle.job_id, after=after, limit=_EVENTS_PER_PAGE
            ),
            on_trouble=handle.on_store_unavailable,
        )
        for after, data in page:  # noqa: B007
            event = job_pb2.JobEvent.FromString(data)
            last = max(last, event.progress.sequence)
        if len(page) < _EVENTS_PER_PAGE:
            return last


def begin_scheduling(draft: Draft) -> None:
    """Moves a pending job to SCHEDULING."""
    if draft.job.state == PENDING:
        draft.move(SCHEDULING)


def start_edit(
    session: DesignSession, refused: Sequence[RefusedSnapshot], coordinator: str
) -> Edit:
    """Returns the edit that starts or recovers a run, and records its damaged snapshots.

    A pause or cancellation that arrived meanwhile keeps its state.
    """

    def edit(draft: Draft) -> None:
        for each in refused:
            draft.record_damaged_snapshot(each.revision, each.why)
        if session.spec.search != draft.job.spec.search:
            draft.set_measured_steps(session.spec)
        if draft.job.state == RECOVERING:
            draft.record_recovery(session.designer.steps, coordinator)
        if draft.job.state in (SCHEDULING, RECOVERING):
            draft.move(RUNNING)

    return edit


def failure_edit(reason: job_pb2.FailureReason, message: str) -> Edit:
    """Returns the edit that fails an active job."""

    def edit(draft: Draft) -> None:
        if draft.job.state in ACTIVE:
            draft.fail(reason, message, FAILED)

    return edit


class JobRun(ABC):
    """Base class: runs one job that this coordinator holds."""

    def __init__(
        self,
        environment: Environment,
        handle: JobHandle,
        evaluator: SharedEvaluator,
        settings: RunSettings,
    ) -> None:
        self._environment = environment
        self._handle = handle
        self._evaluator = evaluator
        self._settings = settings
        self.changed = asyncio.Event()
        # Why the run must be suspended; empty while it may continue.
        self._suspend_reason = ""
        self._skips_closing_evaluation = False

    def notify_changed(self) -> None:
        """Wakes the run because the job's record has changed."""
        self.changed.set()

    def request_suspend(self, why: str) -> None:
        """Asks the run to checkpoint and return its job to the queue. `why` is shown to users."""
        self._suspend_reason = why
        self.changed.set()

    def skip_closing_evaluation(self) -> None:
        """Ends a job that is being cancelled without its closing evaluation."""
        self._skips_closing_evaluation = True
        self.changed.set()

    @abstractmethod
    def write_live(self, progress: progress_pb2.JobProgress) -> None:
        """Fills in progress that is newer than the last commit."""

    async def run(self) -> None:
        """Runs until the job is no longer active or another coordinator has acquired it."""
        try:
            await self._run()
        except JobLost:
            pass
        except PacketLimitReached as error:
            most = self._settings.maximum_packets
            why = f"{error}: this farm allows at most {most} packets per job"
            await self._fail(PacketLimitReached(why))
        except Exception as error:
            await self._fail(error)
        finally:
            await self._close()

    @abstractmethod
    async def _run(self) -> None:
        """Runs the job. Raises JobLost, or the error for which the job fails."""

    @abstractmethod
    async def _close(self) -> None:
        """Cancels background work of the run."""

    async def _fail(self, error: Exception) -> None:
        with contextlib.suppress(JobLost):
            await self._handle.change(failure_edit(*reason_for(error)))

    def _share(self, simulated_packets: int) -> Share:
        """Returns the job's share of the evaluator, with its remaining packet budget."""
        job, most = self._handle.job, self._settings.maximum_packets
        if most is not None:
            most = max(most - simulated_packets, 0)
        return Share(job.id, job.priority, job.weight, packet_limit=most)


class DesignJobRun(JobRun):
    """Runs a design job. Also the `Control` of its run loop."""

    def __init__(
        self,
        environment: Environment,
        handle: JobHandle,
        evaluator: SharedEvaluator,
        settings: RunSettings,
    ) -> None:
        super().__init__(environment, handle, evaluator, settings)
        self._live = LiveProgress(handle.job.progress, settings.price_per_cpu_hour)
        self._loop = RunLoop(evaluator, self, self._share_now, compute=self._compute)
        self._checkpointer: StoreCheckpointer | None = None

    def directive(self) -> Directive:
        if self._handle.token is None:
            return Directive.ABANDON
        state = self._handle.job.state
        if state == CANCELLING and not self._skips_closing_evaluation:
            return Directive.CANCEL
        if state in (PAUSING, CANCELLING) or self._suspend_reason:
            return Directive.SUSPEND
        return Directive.CONTINUE

    def write_live(self, progress: progress_pb2.JobProgress) -> None:
        self._live.write(progress, self._handle.job.spec.stop)

    async def _close(self) -> None:
        if self._checkpointer is not None:
            await self._checkpointer.close()

    async def _run(self) -> None:
        handle, environment = self._handle, self._environment
        if handle.job.state == PENDING:
            await handle.change(begin_scheduling)
        store, threads = environment.store, environment.threads
        snapshot, refused = await retry_until_available(
            lambda: threads.store(newest_snapshot, store, handle.job_id),
            on_trouble=handle.on_store_unavailable,
        )
        handle.on_store_recovered()
        record = handle.record
        spec, first = record.job.spec, first_table(record)
        designer = await threads.compute(restore_designer, record, snapshot, refused)
        last_sequence = designer.event_sequence
        if snapshot is None:
            resolved = await self._loop.rehearse(spec, self._live.report)
            if resolved is None:
                await handle.change(suspend_edit(self._suspend_reason))
                return
            if resolved != spec:
                spec = resolved
                designer = await threads.compute(Designer, spec, first_table=first)
        elif refused:
            last_sequence = await _last_sequence(environment, handle, snapshot.revision)
        used = handle.job.progress
        session = DesignSession(
            designer,
            spec,
            Stopwatch(Elapsed(used.wall_seconds, used.cpu_seconds), environment.monotonic),
            first_table=first,
            compute=self._compute,
        )
        self._checkpointer = StoreCheckpointer(
            environment,
            handle,
            session,
            self._live,
            self._settings,
            last_sequence=last_sequence,
            refused=[each.revision for each in refused],
            why_suspended=lambda: self._suspend_reason,
            on_failure=self.notify_changed,
        )
        await self._checkpointer.save(start_edit(session, refused, environment.name))
        await self._loop.run(session, self._checkpointer)

    def _share_now(self) -> Share:
        session = self._live.session
        return self._share(0 if session is None else session.designer.simulated_packets)

    async def _compute(self, call: Callable[[], Any]) -> Any:
        result, seconds = await self._environment.threads.compute(_timed, call)
        self._environment.observer.computed(self._handle.job_id, seconds)
        return result

    async def _fail(self, error: Exception) -> None:
        fail = failure_edit(*reason_for(error))
        with contextlib.suppress(JobLost):
            if self._checkpointer is not None:
                try:
                    await self._checkpointer.save(fail)
                except JobLost:
                    raise
                except Exception:
                    # The designer's unsaved steps may be the cause of the error, so fail without
                    # them.
                    _log.warning(
                        "the last steps of a failed job were not saved", job_id=self._handle.job_id
                    )
                else:
                    return
            await self._handle.change(fail)


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.thread_time()
    return call(), time.thread_time() - began
