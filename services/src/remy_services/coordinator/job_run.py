"""One run of a job: from its turn to its end, or until it has to wait."""

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
    designer_of,
    first_table,
    suspended,
)
from remy_services.coordinator.job_handle import Edit, Environment, JobHandle, until_available
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
    """The reason, and one sentence for people. What nobody expected goes to the log."""
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason, str(error)
    error_id = secrets.token_hex(4)
    _log.error("a job failed unexpectedly", error_id=error_id, exc_info=error)
    return job_pb2.FAILURE_REASON_INTERNAL, f"internal error, id {error_id} in the log"


_EVENTS_PER_PAGE = 1000


async def _last_sequence(environment: Environment, handle: JobHandle, revision: int) -> int:
    """Of the last progress event after `revision`: the steps since the snapshot of that revision
    are made again, and are in the history already."""
    store, threads = environment.store, environment.threads
    last, after = 0, revision
    while True:
        page = await until_available(
            lambda after=after: threads.store(  # type: ignore[misc]
                store.events, handle.job_id, after=after, limit=_EVENTS_PER_PAGE
            ),
            on_trouble=handle.in_trouble,
        )
        for after, data in page:  # noqa: B007
            event = job_pb2.JobEvent.FromString(data)
            last = max(last, event.progress.sequence)
        if len(page) < _EVENTS_PER_PAGE:
            return last


def schedule(draft: Draft) -> None:
    """The job's turn has come."""
    if draft.job.state == PENDING:
        draft.move(SCHEDULING)


def started(session: DesignSession, refused: Sequence[RefusedSnapshot], coordinator: str) -> Edit:
    """The designer is there, after these snapshots could not be used. Whoever has asked for
    something else meanwhile is heard later."""

    def edit(draft: Draft) -> None:
        for each in refused:
            draft.refused_snapshot(each.revision, each.why)
        if session.spec.search != draft.job.spec.search:
            draft.measured_length(session.spec)
        if draft.job.state == RECOVERING:
            draft.recovered(session.designer.steps, coordinator)
        if draft.job.state in (SCHEDULING, RECOVERING):
            draft.move(RUNNING)

    return edit


def failed(reason: job_pb2.FailureReason, message: str) -> Edit:
    """The job cannot go on."""

    def edit(draft: Draft) -> None:
        if draft.job.state in ACTIVE:
            draft.fail(reason, message, FAILED)

    return edit


class JobRun(ABC):
    """Drives one job that this coordinator holds."""

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
        # One sentence for people; empty while the run may stay.
        self._why_leave = ""
        self._is_hurried = False

    def look(self) -> None:
        """The job's record has changed."""
        self.changed.set()

    def leave(self, why: str) -> None:
        """Has the job keep what it has, and wait for another turn. `why` is for people."""
        self._why_leave = why
        self.changed.set()

    def hurry(self) -> None:
        """A job that is being cancelled ends at once, without its closing evaluation."""
        self._is_hurried = True
        self.changed.set()

    @abstractmethod
    def write_live(self, progress: progress_pb2.JobProgress) -> None:
        """Sets what is known besides what was committed."""

    async def run(self) -> None:
        """Returns when the job is not active any more, or belongs to another coordinator."""
        try:
            await self._run()
        except JobLost:
            pass
        except PacketLimitReached as error:
            most = self._settings.maximum_packets
            why = f"{error}: at most {most} are allowed for one job here"
            await self._fail(PacketLimitReached(why))
        except Exception as error:
            await self._fail(error)
        finally:
            await self._close()

    @abstractmethod
    async def _run(self) -> None:
        """All of it. Raises JobLost, and what the job fails for."""

    @abstractmethod
    async def _close(self) -> None:
        """Begins nothing more."""

    async def _fail(self, error: Exception) -> None:
        with contextlib.suppress(JobLost):
            await self._handle.change(failed(*reason_for(error)))

    def _share(self, simulated_packets: int) -> Share:
        """What the job may have of the evaluator after so many packets."""
        job, most = self._handle.job, self._settings.maximum_packets
        if most is not None:
            most = max(most - simulated_packets, 0)
        return Share(job.id, job.priority, job.weight, packet_limit=most)


class DesignJobRun(JobRun):
    """Drives a job's designer; also the loop's `Control`."""

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
        if state == CANCELLING and not self._is_hurried:
            return Directive.CANCEL
        if state in (PAUSING, CANCELLING) or self._why_leave:
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
            await handle.change(schedule)
        store, threads = environment.store, environment.threads
        snapshot, refused = await until_available(
            lambda: threads.store(newest_snapshot, store, handle.job_id),
            on_trouble=handle.in_trouble,
        )
        handle.well_again()
        record = handle.record
        spec, first = record.job.spec, first_table(record)
        designer = await threads.compute(designer_of, record, snapshot, refused)
        last_sequence = designer.event_sequence
        if snapshot is None:
            resolved = await self._loop.rehearse(spec, self._live.reported)
            if resolved is None:
                await handle.change(suspended(self._why_leave))
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
            why_suspended=lambda: self._why_leave,
            on_failure=self.look,
        )
        await self._checkpointer.save(started(session, refused, environment.name))
        await self._loop.run(session, self._checkpointer)

    def _share_now(self) -> Share:
        session = self._live.session
        return self._share(0 if session is None else session.designer.simulated_packets)

    async def _compute(self, call: Callable[[], Any]) -> Any:
        result, seconds = await self._environment.threads.compute(_timed, call)
        self._environment.observer.computed(self._handle.job_id, seconds)
        return result

    async def _fail(self, error: Exception) -> None:
        fail = failed(*reason_for(error))
        with contextlib.suppress(JobLost):
            if self._checkpointer is not None:
                try:
                    await self._checkpointer.save(fail)
                except JobLost:
                    raise
                except Exception:
                    # What the designer last said may be what is wrong.
                    _log.warning(
                        "a failed job's last steps are not kept", job_id=self._handle.job_id
                    )
                else:
                    return
            await self._handle.change(fail)


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.thread_time()
    return call(), time.thread_time() - began
