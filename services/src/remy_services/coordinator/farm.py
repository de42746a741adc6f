"""The coordinator's state without its gRPC server: job catalogue, scheduler and evaluator."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from remy_farm.evaluation.interface import SharedEvaluator
from remy_proto.v1 import job_pb2, spec_pb2
from remy_services.coordinator.checkpointing import RunSettings
from remy_services.coordinator.evaluation_run import EvaluatedParts, EvaluationRun
from remy_services.coordinator.job_handle import (
    Edit,
    Environment,
    JobHandle,
    retry_until_available,
    to_commit,
)
from remy_services.coordinator.job_run import DesignJobRun, JobRun
from remy_services.coordinator.refusals import RequestIdTaken, invalid_field
from remy_services.jobs.progress import QueueLimits, select_running_jobs
from remy_services.jobs.requests import NoSuchJob, find_job, new_job_id, referenced_traces
from remy_services.jobs.states import (
    ACTIVE,
    FINAL,
    PAUSED,
    PENDING,
    RECOVERING,
    RUNNING,
    SCHEDULING,
    WAITING,
    Draft,
    after_crash,
)
from remy_services.stores.contract import JobExists, StoredJob, StoreError, StoreUnavailable
from remy_services.stores.recordings import UnusedRecordings, is_recording
from remy_services.telemetry.samples import WorkerPods


@dataclass(frozen=True)
class CallLimits:
    """Limits on the size and number of calls."""

    #: Largest specification text, in bytes.
    spec_bytes: int = 256 << 10
    #: Maximum number of open streams (job watches and transfers).
    open_streams: int = 1000
    #: Largest imported job archive, in bytes.
    archive_bytes: int = 256 << 20
    #: Largest total size of an evaluation job's requests, in bytes.
    evaluation_bytes: int = 64 << 20


@dataclass(frozen=True)
class FarmSettings:
    """Settings of a farm: runs, queue, call limits and retention."""

    runs: RunSettings = field(default_factory=RunSettings)
    jobs: QueueLimits = field(default_factory=lambda: QueueLimits(100, 100))
    calls: CallLimits = field(default_factory=CallLimits)
    #: Seconds after its end at which a job is removed from the store and kept in the mirror
    #: only. None keeps jobs forever.
    retention_seconds: float | None = None
    #: Seconds for which the store keeps link traces that no job references.
    trace_retention_seconds: float = 3600.0
    #: Interval between checks that the store accepts writes, in seconds.
    store_check_seconds: float = 5.0


_log = structlog.get_logger()

_RANDOM_BYTES = 8
# Minimum interval between reloads of the job list, which show the writes of other coordinators.
_REFRESH_SECONDS = 2.0


class Catalogue:
    """In-memory index of jobs by id, reloaded from the store at startup and on demand."""

    def __init__(self, environment: Environment, on_taken: Callable[[], None]) -> None:
        """`on_taken` is called after this coordinator has acquired a job that had no owner."""
        self._environment = environment
        self._on_taken = on_taken
        self._handles: dict[str, JobHandle] = {}
        self._adding = asyncio.Lock()
        self._refreshed = 0.0
        self._refresh: asyncio.Task[None] | None = None

    def __iter__(self) -> Iterator[JobHandle]:
        return iter(list(self._handles.values()))

    async def load(self, on_trouble: Callable[[str], None]) -> None:
        """Reads all jobs and acquires the unfinished ones from their previous coordinator.

        Retries while the store is unavailable; `on_trouble` gets the reason of each failure.
        """
        store, threads = self._environment.store, self._environment.threads
        stored = await retry_until_available(
            lambda: threads.store(store.jobs), on_trouble=on_trouble
        )
        for each in stored:
            if is_recording(each.job_id):
                continue
            handle = JobHandle(self._environment, each)
            if handle.job.state not in FINAL:
                await retry_until_available(handle.acquire, on_trouble=on_trouble)
                await handle.change(after_crash)
            self._handles[each.job_id] = handle
        self._refreshed = time.monotonic()

    async def find(self, name: str) -> JobHandle:
        """Returns the job with this id or name.

        Raises NoSuchJob, AmbiguousName, StoreUnavailable, or CallRefused if `name` is empty.
        """
        if not name:
            raise invalid_field("job", "is required: the id or the name of a job")
        try:
            return self._handles[self._id_of(name)]
        except NoSuchJob:
            await self.refresh()
        try:
            return self._handles[self._id_of(name)]
        except NoSuchJob as error:
            mirror = self._environment.mirror
            place = None if mirror is None else await mirror.archive_location(name)
            if place is None:
                raise
            raise NoSuchJob(
                f"{error} in the store, but {place} has an archive of it; import-job restores the "
                "job"
            ) from error

    async def submit(
        self,
        record: job_pb2.JobRecord,
        request_key: str | None,
        parts: Sequence[job_pb2.JobEpoch] = (),
    ) -> tuple[JobHandle, bool]:
        """Creates a job and returns (handle, True), or (existing handle, False) for a repeated
        request.

        The record gets its id, creation time and initial state here. If the record already has an
        id, an existing job with that id is returned. `parts` are the requests of an evaluation job.
        Raises RequestIdTaken if `request_key` was used for a different request, and
        StoreUnavailable.
        """
        store, threads = self._environment.store, self._environment.threads
        while True:
            draft = self._new(record)
            draft.epochs = parts
            try:
                job_id = await threads.store(
                    store.create, draft.job.id, to_commit(draft), request_key=request_key
                )
            except JobExists:
                if not record.job.id:
                    continue
                return await self.find(record.job.id), False
            break
        if job_id not in self._handles:
            await self._add(await threads.store(store.job, job_id))
        handle = self._handles[job_id]
        check_same_request(handle, record.request_sha256)
        return handle, job_id == draft.job.id

    def find_by_request_id(self, owner: str, request_id: str) -> JobHandle | None:
        """Returns the job created by this owner's request id, or None if this coordinator knows
        none.
        """
        for handle in self:
            if handle.record.client_request_id == request_id and handle.job.owner == owner:
                return handle
        return None

    def evaluated_parts(self) -> EvaluatedParts:
        """Returns the finished parts of evaluation jobs, by request hash.

        Imported jobs are left out, because this farm did not compute their outcomes.
        """
        return {
            part.sha256: (handle.job_id, number)
            for handle in self
            if handle.record.request_sha256
            for number, part in enumerate(handle.job.evaluation.parts[: handle.job.progress.step])
        }

    def remove(self, job_id: str) -> None:
        """Drops a job that was deleted from the store."""
        self._handles.pop(job_id, None)

    def refresh_soon(self) -> None:
        """Starts a reload in the background, unless the last one is less than 2 s old."""
        if self._refresh is None and time.monotonic() - self._refreshed >= _REFRESH_SECONDS:
            self._refresh = asyncio.create_task(self._refresh_quietly())

    async def refresh(self) -> None:
        """Reloads all jobs from the store. Raises StoreUnavailable."""
        environment = self._environment
        entries = await environment.threads.store(environment.store.jobs)
        stored = [each for each in entries if not is_recording(each.job_id)]
        self._refreshed = time.monotonic()
        known = {each.job_id for each in stored}
        for job_id, handle in list(self._handles.items()):
            if job_id not in known and handle.token is None:
                del self._handles[job_id]
        for each in stored:
            if each.job_id in self._handles:
                self._handles[each.job_id].refresh(each)
            else:
                await self._add(each)

    async def close(self) -> None:
        """Cancels pending commits and the running reload."""
        if self._refresh is not None:
            self._refresh.cancel()
        await asyncio.gather(*(handle.close() for handle in self))

    async def _add(self, stored: StoredJob) -> None:
        async with self._adding:
            if stored.job_id in self._handles:
                return
            now = self._environment.clock().seconds
            handle = JobHandle(self._environment, stored, arrived_seconds=now)
            # The job is new, or its coordinator ended before it could acquire the job.
            is_free = stored.token == 0 and handle.job.state not in FINAL
            if is_free:
                await handle.acquire()
            self._handles[stored.job_id] = handle
        if is_free:
            self._on_taken()

    async def _refresh_quietly(self) -> None:
        try:
            with contextlib.suppress(StoreUnavailable):
                await self.refresh()
        except Exception as error:
            _log.error("the job list could not be reloaded", exc_info=error)
        finally:
            self._refresh = None

    def _id_of(self, name: str) -> str:
        if name in self._handles:
            return name
        return find_job((handle.job for handle in self), name)

    def _new(self, record: job_pb2.JobRecord) -> Draft:
        now = self._environment.clock()
        draft = Draft(record, now)
        draft.job.id = record.job.id or new_job_id(now.seconds, secrets.token_bytes(_RANDOM_BYTES))
        draft.job.create_time.CopyFrom(now)
        draft.job.ClearField("state")
        draft.move(PENDING)
        if record.job.state == PAUSED:
            draft.move(PAUSED, by=record.job.owner)
        return draft


def check_same_request(handle: JobHandle, request_sha256: bytes) -> None:
    """Raises RequestIdTaken unless the job was made by a request of this hash."""
    if handle.record.request_sha256 != request_sha256:
        raise RequestIdTaken(
            f"client_request_id {handle.record.client_request_id!r} was used for a different "
            f"request, which created job {handle.job_id}; give each request its own id"
        )


_CONTENDING = frozenset({PENDING, RECOVERING, SCHEDULING, RUNNING})
_PREEMPTED = "preempted by a job of higher priority; waits for a free slot"


class Scheduler:
    """Starts, preempts and stops job runs according to priority and queue limits."""

    def __init__(
        self,
        environment: Environment,
        catalogue: Catalogue,
        evaluator: SharedEvaluator,
        settings: RunSettings,
        limits: QueueLimits,
    ) -> None:
        self._environment = environment
        self._catalogue = catalogue
        self._evaluator = evaluator
        self._settings = settings
        self.limits = limits
        self._runs: dict[str, JobRun] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._is_closing = False

    @property
    def running(self) -> int:
        """Number of running jobs."""
        return len(self._runs)

    def running_of(self, owner: str) -> int:
        """Counts the running jobs of one owner."""
        return sum(
            handle.job.owner == owner for handle in self._catalogue if handle.job_id in self._runs
        )

    def run_of(self, job_id: str) -> JobRun | None:
        """Returns the job's run, or None if the job is not running here."""
        return self._runs.get(job_id)

    def reschedule(self) -> None:
        """Applies the queue policy again.

        To be called after any job was added, changed or removed.
        """
        for each in self._runs.values():
            each.notify_changed()
        if self._is_closing:
            return
        contenders = (handle.job for handle in self._catalogue if _contends(handle))
        selected = select_running_jobs(contenders, self._runs, self.limits)
        for handle in self._catalogue:
            run = self._runs.get(handle.job_id)
            if run is None and handle.job_id in selected:
                self._begin(handle)
            elif run is not None and handle.job_id not in selected and _contends(handle):
                run.request_suspend(_PREEMPTED)

    async def close(self, why: str, timeout_seconds: float) -> None:
        """Suspends all runs and waits for them.

        Runs that take longer than the timeout are cancelled; they lose as much as in a crash.
        """
        self._is_closing = True
        for run in self._runs.values():
            run.request_suspend(why)
        tasks = set(self._tasks.values())
        if tasks:
            await asyncio.wait(tasks, timeout=timeout_seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, handle: JobHandle) -> None:
        common = (self._environment, handle, self._evaluator, self._settings)
        run: JobRun = (
            EvaluationRun(*common, self._catalogue.evaluated_parts)
            if handle.job.HasField("evaluation")
            else DesignJobRun(*common)
        )
        self._runs[handle.job_id] = run
        self._tasks[handle.job_id] = asyncio.create_task(self._run(handle, run))

    async def _run(self, handle: JobHandle, run: JobRun) -> None:
        try:
            await run.run()
        finally:
            del self._runs[handle.job_id]
            del self._tasks[handle.job_id]
            self.reschedule()


def _contends(handle: JobHandle) -> bool:
    return handle.token is not None and handle.job.state in _CONTENDING


_MAINTENANCE_SECONDS = 30.0
# Sweeping unused traces reads the whole store, so it runs only every so many rounds.
_ROUNDS_PER_SWEEP = 20


class Farm:
    """A coordinator's jobs, scheduler and evaluator, as its call handlers see them."""

    def __init__(
        self, environment: Environment, evaluator: SharedEvaluator, settings: FarmSettings
    ) -> None:
        """The caller keeps ownership of the evaluator and closes it."""
        self.environment = environment
        self.evaluator = evaluator
        self.settings = settings
        #: Why jobs cannot be read yet; empty once they can.
        self.not_ready = "the jobs are being loaded from the store"
        #: Number of open watch and transfer streams.
        self.open_streams = 0
        #: Why changes are refused during shutdown; empty while they are accepted.
        self.closing = ""
        #: Status sentence about the Kubernetes workers of each job, by job id.
        self.worker_status: Mapping[str, str] = {}
        self.worker_pods: Mapping[str, WorkerPods] = {}
        #: Says in one sentence which part of a specification this farm does not support;
        #: returns None if the whole specification is supported.
        self.unsupported_reason: Callable[[spec_pb2.DesignSpec], str | None] = lambda _: None
        self._maintenance: asyncio.Task[None] | None = None
        self._sweep = UnusedRecordings(environment.store, settings.trace_retention_seconds)
        self.catalogue = Catalogue(environment, lambda: self.scheduler.reschedule())
        self.scheduler = Scheduler(
            environment, self.catalogue, evaluator, settings.runs, settings.jobs
        )

    async def load(self) -> None:
        """Loads the jobs and starts the scheduler. Waits until the store is available."""
        await self.catalogue.load(self._on_store_trouble)
        self.not_ready = ""
        self.scheduler.reschedule()
        self._maintenance = asyncio.create_task(self._maintain())

    async def change(self, handle: JobHandle, edit: Edit) -> None:
        """Commits a change of a job that a caller asked for, then reschedules.

        Exceptions of `edit` are passed on. Raises JobLost for a job that another coordinator runs,
        StoreDegraded and StoreError.
        """
        if handle.token is None and handle.job.state in FINAL:
            await handle.acquire()
        await handle.try_change(edit)
        self.scheduler.reschedule()

    async def delete(self, handle: JobHandle) -> None:
        """Deletes a job from the store. Raises JobLost or StoreError."""
        if handle.token is None and handle.job.state in FINAL:
            await handle.acquire()
        await handle.delete()
        self.catalogue.remove(handle.job_id)
        self.scheduler.reschedule()

    def shown(self, handle: JobHandle, *, with_spec: bool = True) -> job_pb2.Job:
        """Returns the committed job, with its live progress and status message filled in."""
        job = job_pb2.Job()
        job.CopyFrom(handle.job)
        if not with_spec:
            job.ClearField("spec")
            if job.HasField("evaluation"):
                del job.evaluation.parts[:]
        # In a final or waiting state the committed progress is complete.
        run = self.scheduler.run_of(handle.job_id) if job.state in ACTIVE else None
        if run is not None:
            run.write_live(job.progress)
        if handle.trouble:
            job.status_message = f"waits for the store: {handle.trouble}"
        elif run is not None and job.state not in FINAL and job.id in self.worker_status:
            job.status_message = self.worker_status[job.id]
        elif run is not None and self.evaluator.status().threads == 0:
            job.status_message = "waits for workers: no worker is connected"
        elif handle.token is not None and job.state == PENDING and not job.status_message:
            job.status_message = self._queue_reason(job.owner)
        return job

    def has_work(self, job_id: str) -> bool:
        """Returns whether this job may still need evaluations. An empty `job_id` means any job."""
        # Workers that reconnect while jobs are still loading must not be told to exit.
        return bool(self.not_ready) or any(
            handle.token is not None and handle.job.state in WAITING | ACTIVE
            for handle in self.catalogue
            if job_id in ("", handle.job_id)
        )

    async def close(self, why: str, timeout_seconds: float) -> None:
        """Suspends all jobs and refuses further changes, with the sentence `why`."""
        self.closing = why
        for handle in self.catalogue:
            handle.feed.wake()
        if self._maintenance is not None:
            self._maintenance.cancel()
        await self.scheduler.close(why, timeout_seconds)
        await self.catalogue.close()

    async def retire_old_jobs(self) -> None:
        """Removes jobs past their retention from the store, once the mirror has them.

        Raises StoreError.
        """
        mirror, limit = self.environment.mirror, self.settings.retention_seconds
        if mirror is None or limit is None:
            return
        for handle in self.catalogue:
            since = max(handle.job.end_time.seconds, handle.arrived_seconds)
            if handle.job.state in FINAL and self.environment.clock().seconds - since >= limit:
                problem = await handle.retire(mirror)
                if problem is None:
                    self.catalogue.remove(handle.job_id)
                _log.info("job retired", job_id=handle.job_id, problem=problem or "")

    async def sweep_traces(self) -> None:
        """Deletes link traces that no job has referenced for the retention time.

        Raises StoreError.
        """
        needed = {each for handle in self.catalogue for each in referenced_traces(handle.job)}
        now = self.environment.clock().seconds
        await self.environment.threads.store(self._sweep.sweep, needed, now)

    async def _maintain(self) -> None:
        """Periodically acquires orphaned jobs, and removes expired jobs and unused traces."""
        for number in itertools.count(1):
            await asyncio.sleep(_MAINTENANCE_SECONDS)
            self.catalogue.refresh_soon()
            try:
                await self.retire_old_jobs()
                if number % _ROUNDS_PER_SWEEP == 0:
                    await self.sweep_traces()
            except StoreError as error:
                _log.warning("expired jobs and unused traces were not removed", why=str(error))

    def _on_store_trouble(self, why: str) -> None:
        self.not_ready = f"the jobs cannot be loaded from the store: {why}"

    def _queue_reason(self, owner: str) -> str:
        limits = self.scheduler.limits
        if self.scheduler.running >= limits.running_jobs:
            return f"queued: the limit of {limits.running_jobs} running jobs is reached"
        most = limits.running_jobs_per_owner
        if self.scheduler.running_of(owner) >= most:
            return f"queued: {owner} has reached the limit of {most} running jobs per owner"
        return ""
