"""A coordinator without its server: jobs, who evaluates for them, and when they run."""

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
from remy_services.coordinator.evaluation_run import EvaluationRun, KeptParts
from remy_services.coordinator.job_handle import (
    Edit,
    Environment,
    JobHandle,
    commit_of,
    until_available,
)
from remy_services.coordinator.job_run import DesignJobRun, JobRun
from remy_services.coordinator.refusals import RequestIdTaken, bad_field
from remy_services.jobs.progress import QueueLimits, whose_turn
from remy_services.jobs.requests import NoSuchJob, find_job, named_recordings, new_job_id
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
    """What callers may ask for at most."""

    #: Of a specification's text, in bytes.
    spec_bytes: int = 256 << 10
    #: Streams that are open at once: watches and transfers of jobs.
    open_streams: int = 1000
    #: Of an archive that is imported, in bytes.
    archive_bytes: int = 256 << 20
    #: Of the requests of an evaluation job, in bytes.
    evaluation_bytes: int = 64 << 20


@dataclass(frozen=True)
class FarmSettings:
    """What jobs and calls are held to."""

    runs: RunSettings = field(default_factory=RunSettings)
    jobs: QueueLimits = field(default_factory=lambda: QueueLimits(100, 100))
    calls: CallLimits = field(default_factory=CallLimits)
    #: How long the store keeps jobs that have ended; then the mirror alone does. None: for ever.
    retention_seconds: float | None = None
    #: How long the store keeps recordings of links that no job names.
    trace_retention_seconds: float = 3600.0
    #: How often the store is asked whether it can be written to.
    store_check_seconds: float = 5.0


_log = structlog.get_logger()

_RANDOM_BYTES = 8
# What other coordinators do shows within about this time.
_REFRESH_SECONDS = 2.0


class Catalogue:
    """Jobs by id. The store is read whole at the beginning, and again now and then."""

    def __init__(self, environment: Environment, on_taken: Callable[[], None]) -> None:
        """`on_taken` is told when a job was found that nobody had taken."""
        self._environment = environment
        self._on_taken = on_taken
        self._handles: dict[str, JobHandle] = {}
        self._adding = asyncio.Lock()
        self._refreshed = 0.0
        self._refresh: asyncio.Task[None] | None = None

    def __iter__(self) -> Iterator[JobHandle]:
        return iter(list(self._handles.values()))

    async def load(self, on_trouble: Callable[[str], None]) -> None:
        """Reads the store, and takes all jobs that are not finished from whoever had them.

        Waits for as long as the store is not available, and tells why.
        """
        store, threads = self._environment.store, self._environment.threads
        stored = await until_available(lambda: threads.store(store.jobs), on_trouble=on_trouble)
        for each in stored:
            if is_recording(each.job_id):
                continue
            handle = JobHandle(self._environment, each)
            if handle.job.state not in FINAL:
                await until_available(handle.hold, on_trouble=on_trouble)
                await handle.change(after_crash)
            self._handles[each.job_id] = handle
        self._refreshed = time.monotonic()

    async def find(self, name: str) -> JobHandle:
        """The job of this id or name. Raises NoSuchJob, AmbiguousName or StoreUnavailable,
        and CallRefused if it is not given."""
        if not name:
            raise bad_field("job", "must be given: the id of a job, or its name")
        try:
            return self._handles[self._id_of(name)]
        except NoSuchJob:
            await self.refresh()
        try:
            return self._handles[self._id_of(name)]
        except NoSuchJob as error:
            backup = self._environment.backup
            place = None if backup is None else await backup.place(name)
            if place is None:
                raise
            raise NoSuchJob(
                f"{error} in the store any more, but {place} has it; import-job takes it up again"
            ) from error

    async def submit(
        self,
        record: job_pb2.JobRecord,
        request_key: str | None,
        parts: Sequence[job_pb2.JobEpoch] = (),
    ) -> tuple[JobHandle, bool]:
        """A new job, and True; or the one that a request of this key made before, and False.
        `parts` are what an evaluation job asks for.

        Sets what the record lacks: id, time and state. One that has an id is made once: the job of
        that id is returned if there is one. Raises RequestIdTaken if the request of this key was
        another one, and StoreUnavailable.
        """
        store, threads = self._environment.store, self._environment.threads
        while True:
            draft = self._new(record)
            draft.epochs = parts
            try:
                job_id = await threads.store(
                    store.create, draft.job.id, commit_of(draft), request_key=request_key
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

    def made_by(self, owner: str, request_id: str) -> JobHandle | None:
        """The job that an owner's request of this id made; None if it is not known here."""
        for handle in self:
            if handle.record.client_request_id == request_id and handle.job.owner == owner:
                return handle
        return None

    def evaluated_parts(self) -> KeptParts:
        """What evaluation jobs have had evaluated; not of those that were brought here: what they
        hold nobody here has seen."""
        return {
            part.sha256: (handle.job_id, number)
            for handle in self
            if handle.record.request_sha256
            for number, part in enumerate(handle.job.evaluation.parts[: handle.job.progress.step])
        }

    def remove(self, job_id: str) -> None:
        """The job was deleted."""
        self._handles.pop(job_id, None)

    def refresh_soon(self) -> None:
        """Looks at what other coordinators have done, unless that was a moment ago."""
        if self._refresh is None and time.monotonic() - self._refreshed >= _REFRESH_SECONDS:
            self._refresh = asyncio.create_task(self._refresh_quietly())

    async def refresh(self) -> None:
        """Reads the store whole. Raises StoreUnavailable."""
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
        """Gives up whatever the store does not take."""
        if self._refresh is not None:
            self._refresh.cancel()
        await asyncio.gather(*(handle.close() for handle in self))

    async def _add(self, stored: StoredJob) -> None:
        async with self._adding:
            if stored.job_id in self._handles:
                return
            now = self._environment.clock().seconds
            handle = JobHandle(self._environment, stored, arrived_seconds=now)
            # Submitted here, or by a coordinator that ended before it could take its job.
            is_free = stored.token == 0 and handle.job.state not in FINAL
            if is_free:
                await handle.hold()
            self._handles[stored.job_id] = handle
        if is_free:
            self._on_taken()

    async def _refresh_quietly(self) -> None:
        try:
            with contextlib.suppress(StoreUnavailable):
                await self.refresh()
        except Exception as error:
            _log.error("the list of jobs could not be read again", exc_info=error)
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
            f"client_request_id {handle.record.client_request_id!r} made job {handle.job_id} by "
            f"another request; every request needs an id of its own"
        )


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
        """Jobs that are at work."""
        return len(self._runs)

    def running_of(self, owner: str) -> int:
        """Those of one owner."""
        return sum(
            handle.job.owner == owner for handle in self._catalogue if handle.job_id in self._runs
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
        contenders = (handle.job for handle in self._catalogue if _contends(handle))
        turns = whose_turn(contenders, self._runs, self.limits)
        for handle in self._catalogue:
            run = self._runs.get(handle.job_id)
            if run is None and handle.job_id in turns:
                self._begin(handle)
            elif run is not None and handle.job_id not in turns and _contends(handle):
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
            self.look()


def _contends(handle: JobHandle) -> bool:
    return handle.token is not None and handle.job.state in _CONTENDING


_LOOK_AROUND_SECONDS = 30.0
# A sweep reads the store whole.
_LOOKS_PER_SWEEP = 20


class Farm:
    """What calls are answered from."""

    def __init__(
        self, environment: Environment, evaluator: SharedEvaluator, settings: FarmSettings
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
        self.worker_pods: Mapping[str, WorkerPods] = {}
        #: What of a specification this farm cannot do, in one sentence; None if it can do all.
        self.objection: Callable[[spec_pb2.DesignSpec], str | None] = lambda _: None
        self._looking_around: asyncio.Task[None] | None = None
        self._sweep = UnusedRecordings(environment.store, settings.trace_retention_seconds)
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

    async def change(self, handle: JobHandle, edit: Edit) -> None:
        """Changes a job for somebody, and has that take effect.

        What `edit` raises comes out. Raises JobLost for a job that another coordinator is at work
        on, StoreInTrouble and StoreError.
        """
        if handle.token is None and handle.job.state in FINAL:
            await handle.hold()
        await handle.change_soon(edit)
        self.scheduler.look()

    async def delete(self, handle: JobHandle) -> None:
        """Removes a job. Raises JobLost or StoreError."""
        if handle.token is None and handle.job.state in FINAL:
            await handle.hold()
        await handle.delete()
        self.catalogue.remove(handle.job_id)
        self.scheduler.look()

    def shown(self, handle: JobHandle, *, with_spec: bool = True) -> job_pb2.Job:
        """The job as it is committed, with what is known of it at this moment."""
        job = job_pb2.Job()
        job.CopyFrom(handle.job)
        if not with_spec:
            job.ClearField("spec")
            if job.HasField("evaluation"):
                del job.evaluation.parts[:]
        # A run that is ending has committed all that there is to say.
        run = self.scheduler.run_of(handle.job_id) if job.state in ACTIVE else None
        if run is not None:
            run.write_live(job.progress)
        if handle.trouble:
            job.status_message = f"waits for the store: {handle.trouble}"
        elif run is not None and job.state not in FINAL and job.id in self.said_of_workers:
            job.status_message = self.said_of_workers[job.id]
        elif run is not None and self.evaluator.status().threads == 0:
            job.status_message = "waits for workers: none is connected"
        elif handle.token is not None and job.state == PENDING and not job.status_message:
            job.status_message = self._why_it_waits(job.owner)
        return job

    def has_work(self, job_id: str) -> bool:
        """Whether a job, or any if `job_id` is empty, may still have something to evaluate."""
        # Workers that come back before the jobs are read have not been forgotten.
        return bool(self.not_ready) or any(
            handle.token is not None and handle.job.state in WAITING | ACTIVE
            for handle in self.catalogue
            if job_id in ("", handle.job_id)
        )

    async def close(self, why: str, timeout_seconds: float) -> None:
        """Has all jobs keep what they have. `why` is for people."""
        self.closing = why
        for handle in self.catalogue:
            handle.feed.wake()
        if self._looking_around is not None:
            self._looking_around.cancel()
        await self.scheduler.close(why, timeout_seconds)
        await self.catalogue.close()

    async def retire_old_jobs(self) -> None:
        """Jobs that ended long ago leave the store for the mirror. Raises StoreError."""
        backup, limit = self.environment.backup, self.settings.retention_seconds
        if backup is None or limit is None:
            return
        for handle in self.catalogue:
            since = max(handle.job.end_time.seconds, handle.arrived_seconds)
            if handle.job.state in FINAL and self.environment.clock().seconds - since >= limit:
                problem = await handle.retire(backup)
                if problem is None:
                    self.catalogue.remove(handle.job_id)
                _log.info("job retired", job_id=handle.job_id, problem=problem or "")

    async def sweep_traces(self) -> None:
        """Recordings that no job has named for long leave the store. Raises StoreError."""
        needed = {each for handle in self.catalogue for each in named_recordings(handle.job)}
        now = self.environment.clock().seconds
        await self.environment.threads.store(self._sweep.sweep, needed, now)

    async def _look_around(self) -> None:
        """Finds jobs whose coordinator ended before it could take them, and what is of no use."""
        for number in itertools.count(1):
            await asyncio.sleep(_LOOK_AROUND_SECONDS)
            self.catalogue.refresh_soon()
            try:
                await self.retire_old_jobs()
                if number % _LOOKS_PER_SWEEP == 0:
                    await self.sweep_traces()
            except StoreError as error:
                _log.warning("what is of no use stays for now", why=str(error))

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
