"""The checkpointer: keeps what a designer says, and whatever changes its job's state."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from remy_farm.v1 import evaluation_pb2, job_pb2, progress_pb2, spec_pb2
from remy_services.coordinator.job_handle import Checkpointed, Edit, Environment, JobKeeper
from remy_services.designer import CheckpointError, Designer, OtherVersionError
from remy_services.designer.budgets import Elapsed, seconds_left
from remy_services.evaluation import Evaluation, EvaluationProgress
from remy_services.jobs.progress import RateMeter, cost, follow, measure
from remy_services.jobs.states import Draft
from remy_services.stores import RefusedSnapshot, Snapshot, StoreError, retire_snapshots
from remy_simulator import RuleTable
from remy_simulator.messages import from_native, to_native

# How jobs are run.


@dataclass(frozen=True)
class RunSettings:
    """What all jobs of a coordinator have in common."""

    #: A job's state is committed at most once in this time, and whenever the job's state changes.
    checkpoint_seconds: float = 1.0
    #: Snapshots that are kept of each job.
    snapshots_kept: int = 2
    #: Packets that one job may simulate; None: any number.
    maximum_packets: int | None = None
    #: For the estimated cost of a job; None: there is none.
    price_per_cpu_hour: float | None = None


# How long a job has run, over all of its runs.


class Stopwatch:
    """Goes on from what earlier runs have used; CPU time is that of whoever evaluated."""

    def __init__(self, before: Elapsed) -> None:
        self._wall_origin = time.monotonic() - before.wall_seconds
        self._cpu_seconds = before.cpu_seconds

    def add_cpu(self, seconds: float) -> None:
        """An evaluation took so much CPU time."""
        self._cpu_seconds += seconds

    def elapsed(self) -> Elapsed:
        """Time used up to now."""
        return Elapsed(
            wall_seconds=time.monotonic() - self._wall_origin, cpu_seconds=self._cpu_seconds
        )


# A job's designer: new, or from the newest of its snapshots that can be used.


#: Version of what snapshots hold: the designer's sealed checkpoint, whose own version is inside.
SCHEMA_VERSION = 1


class SnapshotsLost(Exception):
    """None of a job's snapshots can be used. One sentence for people."""


def designer_of(
    record: job_pb2.JobRecord, snapshot: Snapshot | None, refused: Sequence[RefusedSnapshot]
) -> Designer:
    """The designer that the newest intact snapshot holds; a new one for a job that never had any.

    `refused` are the snapshots that are newer and not intact. Raises SnapshotsLost,
    OtherVersionError for a snapshot that another version made, or DesignerError.
    """
    first = first_table(record)
    if snapshot is None:
        if not refused and not record.job.HasField("start_time"):
            return Designer(record.job.spec, first_table=first)
        reasons = "; ".join(each.why for each in refused) or "the store holds none"
        raise SnapshotsLost(f"the job cannot go on without a snapshot: {reasons}")
    if snapshot.schema_version != SCHEMA_VERSION:
        raise OtherVersionError(
            f"the snapshot has schema version {snapshot.schema_version}; this program reads "
            f"version {SCHEMA_VERSION} only"
        )
    try:
        return Designer.resume(record.job.spec, snapshot.data, first_table=first)
    except OtherVersionError:
        raise
    except CheckpointError as error:
        raise SnapshotsLost(str(error)) from error


def first_table(record: job_pb2.JobRecord) -> RuleTable | None:
    """The table that the job's design began with; None if it was the search's own."""
    return to_native(record.first_table) if record.HasField("first_table") else None


# A designer at work, and what it has said that is not committed yet.


_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Batch:
    """What is to be committed together."""

    events: Sequence[progress_pb2.ProgressEvent]
    #: Complete up to the designer's present state, but for what only a clock knows.
    progress: job_pb2.JobProgress
    epochs: Sequence[job_pb2.JobEpoch]
    snapshot: bytes


class Desk:
    """Has one designer compute, in a thread and one thing at a time."""

    def __init__(
        self,
        environment: Environment,
        job_id: str,
        designer: Designer,
        *,
        spec: spec_pb2.DesignSpec,
        first_table: RuleTable | None,
        progress: job_pb2.JobProgress,
        last_sequence: int,
        elapsed: Callable[[], Elapsed],
    ) -> None:
        """`last_sequence` is that of the last progress event in the job's history: a designer that
        an older snapshot was taken of makes those after it again, and they are not told twice."""
        self._environment = environment
        self._job_id = job_id
        self._designer = designer
        #: What the designer goes by.
        self.spec = spec
        self._first_table = first_table
        self._progress = job_pb2.JobProgress()
        self._progress.CopyFrom(progress)
        self._last_sequence = last_sequence
        self._elapsed = elapsed
        self._events: list[progress_pb2.ProgressEvent] = []
        self._epochs: list[job_pb2.JobEpoch] = []
        self._one_at_a_time = asyncio.Lock()

    @property
    def finished(self) -> progress_pb2.StopReason | None:
        """Why the design is finished; None while it is not."""
        return self._designer.finished

    @property
    def steps(self) -> int:
        """Steps made."""
        return self._designer.steps

    @property
    def epochs(self) -> int:
        """Epochs completed."""
        return len(self._designer.epochs)

    @property
    def share_done(self) -> float | None:
        """How much of a search of fixed length is done, from 0 to 1."""
        return self._designer.share_done

    @property
    def evaluations(self) -> int:
        """Simulations of one specimen under one candidate in all steps made."""
        return self._designer.evaluations

    @property
    def simulated_packets(self) -> int:
        """Packets sent in them."""
        return self._designer.simulated_packets

    @property
    def has_news(self) -> bool:
        """Whether there is something to commit."""
        return bool(self._events)

    async def next_request(self) -> evaluation_pb2.EvaluationRequest | None:
        """What to evaluate next; None if the design is finished."""
        return await self._compute(self._designer.next_request)

    async def receive(self, outcome: evaluation_pb2.EvaluationOutcome) -> None:
        """Makes a step. Raises OutcomeError."""
        await self._compute(lambda: self._take(self._designer.receive(outcome)))

    async def stop(self, reason: progress_pb2.StopReason) -> None:
        """Stops the design; one more evaluation may be due."""
        await self._compute(lambda: self._take(self._designer.stop(reason)))

    async def reconsider(self, spec: spec_pb2.DesignSpec) -> None:
        """Goes on with a specification that may have other budgets. Raises CheckpointError."""
        await self._compute(lambda: self._reconsider(spec))

    async def batch(self) -> Batch:
        """All that is not committed yet."""
        return await self._compute(self._batch)

    def forget(self, batch: Batch) -> None:
        """The batch, which was the last, has been committed."""
        del self._events[: len(batch.events)]
        del self._epochs[: len(batch.epochs)]

    async def _compute(self, call: Callable[[], _Result]) -> _Result:
        async with self._one_at_a_time:
            result, seconds = await self._environment.threads.compute(_timed, call)
        self._environment.observer.computed(self._job_id, seconds)
        return result

    def _reconsider(self, spec: spec_pb2.DesignSpec) -> None:
        if spec != self.spec:
            data = self._designer.checkpoint()
            self._designer = Designer.resume(spec, data, first_table=self._first_table)
            self.spec = spec
        self._take(self._designer.reconsider())

    def _take(self, events: Sequence[progress_pb2.ProgressEvent]) -> None:
        elapsed = self._elapsed()
        for event in events:
            event.wall_seconds = elapsed.wall_seconds
            event.cpu_seconds = elapsed.cpu_seconds
            if event.HasField("epoch_finished"):
                self._epochs.append(self._epoch(event.epoch_finished.record, elapsed))
        follow(self._progress, events)
        self._events += [event for event in events if event.sequence > self._last_sequence]

    def _epoch(self, record: progress_pb2.EpochRecord, elapsed: Elapsed) -> job_pb2.JobEpoch:
        return job_pb2.JobEpoch(
            record=record,
            table=from_native(self._designer.table),
            time=self._environment.clock(),
            cpu_seconds=elapsed.cpu_seconds,
        )

    def _batch(self) -> Batch:
        progress = job_pb2.JobProgress()
        progress.CopyFrom(self._progress)
        measure(progress, self._designer)
        return Batch(
            events=tuple(self._events),
            progress=progress,
            epochs=tuple(self._epochs),
            snapshot=self._designer.checkpoint(),
        )


def _timed(call: Callable[[], _Result]) -> tuple[_Result, float]:
    began = time.thread_time()
    return call(), time.thread_time() - began


# What is known of a running job besides what has been committed.


class LiveProgress:
    """The running step, rates, clocks, and the guesses that are made of them."""

    def __init__(
        self, stopwatch: Stopwatch, before: job_pb2.JobProgress, price_per_cpu_hour: float | None
    ) -> None:
        self._stopwatch = stopwatch
        self._price = price_per_cpu_hour
        self._meter = RateMeter(time.monotonic(), before.evaluations, before.simulated_packets)
        self._evaluations = before.evaluations
        self._packets = before.simulated_packets
        self._candidates = 0
        self._share_of_step = 0.0

    def began(self, request: evaluation_pb2.EvaluationRequest, desk: Desk) -> None:
        """The evaluation of a request has begun."""
        self._evaluations, self._packets = desk.evaluations, desk.simulated_packets
        self._candidates = len(request.candidates)
        self._share_of_step = 0.0

    def reported(self, done: EvaluationProgress) -> None:
        """So much of it is done."""
        self._share_of_step = done.simulations_done / max(done.simulations, 1)
        self._meter.reached(
            time.monotonic(),
            self._evaluations + done.simulations_done,
            self._packets + done.simulated_packets,
        )

    def evaluated(self, evaluation: Evaluation) -> None:
        """All of it is done."""
        self._stopwatch.add_cpu(evaluation.cpu_seconds)
        self._meter.worked(time.monotonic(), evaluation.workers)

    def write(self, progress: job_pb2.JobProgress) -> None:
        """Sets what is known now."""
        now, elapsed = time.monotonic(), self._stopwatch.elapsed()
        rates = self._meter.rates(now)
        progress.candidates = self._candidates
        progress.candidates_done = int(self._share_of_step * self._candidates)
        progress.evaluations_per_second = rates.evaluations
        progress.packets_per_second = rates.packets
        progress.workers = self._meter.workers(now)
        progress.cpu_seconds = elapsed.cpu_seconds
        progress.wall_seconds = elapsed.wall_seconds
        if self._price is not None:
            progress.estimated_cost = cost(elapsed.cpu_seconds, self._price)

    def write_eta(self, progress: job_pb2.JobProgress, stop: spec_pb2.Stop, desk: Desk) -> None:
        """Sets a guess at the time left, or none."""
        left = seconds_left(
            stop,
            self._stopwatch.elapsed(),
            steps=desk.steps + self._share_of_step,
            epochs=desk.epochs,
            share_done=desk.share_done,
        )
        if left is None:
            progress.ClearField("eta_seconds")
        else:
            progress.eta_seconds = left


# Keeps what a desk has to say: now and then, and whenever the job's state changes.


class Saver:
    """Commits go on beside the next step; one at a time, at most one in `checkpoint_seconds`."""

    def __init__(
        self,
        environment: Environment,
        keeper: JobKeeper,
        desk: Desk,
        write_live: Callable[[job_pb2.JobProgress], None],
        settings: RunSettings,
        *,
        refused: Iterable[int],
        on_failure: Callable[[], None],
    ) -> None:
        """`write_live` sets what only the run's clocks know of its progress; `refused` are the
        revisions of damaged snapshots that the history tells of. `on_failure` is called when a
        commit beside the steps has failed for good; `keep_up` raises what went wrong."""
        self._environment = environment
        self._keeper = keeper
        self._desk = desk
        self._write_live = write_live
        self._checkpoint_seconds = settings.checkpoint_seconds
        self._snapshots_kept = settings.snapshots_kept
        self._told_of = set(refused)
        self._on_failure = on_failure
        self._one_at_a_time = asyncio.Lock()
        self._last_saved = time.monotonic()
        self._task: asyncio.Task[None] | None = None

    def note(self) -> None:
        """The desk has news: has them committed when it is time."""
        if self._task is None and self._desk.has_news:
            self._task = asyncio.create_task(self._save_while_there_is_news())
            self._task.add_done_callback(self._ended)

    async def keep_up(self) -> None:
        """Returns at once, unless a commit takes so long that the next one is due: then waits for
        it, so that no more than that can be lost. Raises what became of the commit."""
        task = self._task
        if task is None:
            return
        if not task.done():
            overdue = self._last_saved + 2 * self._checkpoint_seconds - time.monotonic()
            await asyncio.wait({task}, timeout=None if overdue <= 0 else 0)
        if task.done():
            self._task = None
            task.result()

    async def save(self, edit: Edit) -> None:
        """Commits everything now, together with a change. What `edit` raises comes out."""
        async with self._one_at_a_time:
            await self._save(edit)

    async def close(self) -> None:
        """Begins no more commits."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._on_failure()

    async def _save_while_there_is_news(self) -> None:
        while self._desk.has_news:
            await asyncio.sleep(self._last_saved + self._checkpoint_seconds - time.monotonic())
            async with self._one_at_a_time:
                if self._desk.has_news:
                    await self._save(lambda draft: None)

    async def _save(self, edit: Edit) -> None:
        batch = await self._desk.batch()

        def whole(draft: Draft) -> None:
            recoveries = draft.job.progress.recoveries
            draft.job.progress.CopyFrom(batch.progress)
            draft.job.progress.recoveries = recoveries
            self._write_live(draft.job.progress)
            draft.made_progress(batch.events)
            edit(draft)

        epochs = {epoch.record.epoch: epoch for epoch in batch.epochs}
        await self._keeper.change(whole, Checkpointed(batch.snapshot, SCHEMA_VERSION, epochs))
        self._desk.forget(batch)
        self._last_saved = time.monotonic()
        await self._retire()

    async def _retire(self) -> None:
        """Old snapshots go once the new one has been read back and is what was committed."""
        token = self._keeper.token
        if token is None:
            return
        environment = self._environment
        try:
            damaged = await environment.threads.store(
                retire_snapshots,
                environment.store,
                self._keeper.job_id,
                token,
                keep=self._snapshots_kept,
            )
        except StoreError:
            # The next commit will find out what it means, and snapshots can wait.
            return
        news = [each for each in damaged if each.revision not in self._told_of]
        self._told_of.update(each.revision for each in news)

        def tell(draft: Draft) -> None:
            for each in news:
                draft.refused_snapshot(each.revision, each.why)

        await self._keeper.change(tell)
