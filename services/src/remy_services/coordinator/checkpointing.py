"""Checkpointing: a job's designer in the snapshots of a store, and the sink that keeps it there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from remy_farm.designer import CheckpointError, Designer, OtherVersionError
from remy_farm.driver.loop import DesignSession
from remy_farm.driver.pareto import throughput_delay
from remy_farm.evaluation.interface import Evaluation, EvaluationProgress, OnProgress
from remy_proto.v1 import evaluation_pb2, job_pb2, progress_pb2, spec_pb2
from remy_services.coordinator.job_handle import SCHEMA_VERSION, Edit, Environment, JobHandle
from remy_services.jobs.progress import RateMeter, cost, follow, measure
from remy_services.jobs.states import CANCELLED, CANCELLING, PAUSED, PENDING, SUCCEEDED, Draft
from remy_services.stores.contract import RefusedSnapshot, Snapshot, StoreError, retire_snapshots
from remy_simulator import RuleTable
from remy_simulator.messages import from_native, to_native


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


class LiveProgress:
    """The running step, rates, clocks, and the guesses that are made of them."""

    def __init__(self, before: progress_pb2.JobProgress, price_per_cpu_hour: float | None) -> None:
        #: None while there is no designer yet.
        self.session: DesignSession | None = None
        self._price = price_per_cpu_hour
        self._meter = RateMeter(time.monotonic(), before.evaluations, before.simulated_packets)
        self._evaluations = before.evaluations
        self._packets = before.simulated_packets
        self._candidates = 0
        self._share_of_step = 0.0

    def began(self, request: evaluation_pb2.EvaluationRequest, designer: Designer) -> None:
        """The evaluation of a request has begun."""
        self._evaluations, self._packets = designer.evaluations, designer.simulated_packets
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
        self._meter.worked(time.monotonic(), evaluation.workers)

    def write(self, progress: progress_pb2.JobProgress, stop: spec_pb2.Stop) -> None:
        """Sets what is known now, and a guess at the time left where there is anything to go by."""
        now = time.monotonic()
        rates = self._meter.rates(now)
        progress.candidates = self._candidates
        progress.candidates_done = int(self._share_of_step * self._candidates)
        progress.evaluations_per_second = rates.evaluations
        progress.packets_per_second = rates.packets
        progress.workers = self._meter.workers(now)
        if self.session is not None:
            elapsed = self.session.stopwatch.elapsed()
            progress.cpu_seconds = elapsed.cpu_seconds
            progress.wall_seconds = elapsed.wall_seconds
        if self._price is not None:
            progress.estimated_cost = cost(progress.cpu_seconds, self._price)
        left = None if self.session is None else self.session.eta_seconds(stop, self._share_of_step)
        if left is None:
            progress.ClearField("eta_seconds")
        else:
            progress.eta_seconds = left


class BudgetsChanged(Exception):
    """The job was extended while its design came to its end."""


def finished(
    reason: progress_pb2.StopReason, spec: spec_pb2.DesignSpec, replayable_spec: spec_pb2.DesignSpec
) -> Edit:
    """The design that went by `spec` is finished, and is made anywhere by `replayable_spec`. Raises
    BudgetsChanged if the job does not go by `spec` any more."""

    def edit(draft: Draft) -> None:
        if draft.job.state != CANCELLING and draft.job.spec != spec:
            raise BudgetsChanged
        draft.job.spec.search.worker_schedule[:] = replayable_spec.search.worker_schedule
        is_cancelled = reason == progress_pb2.STOP_REASON_CANCELLED
        draft.finish(reason, CANCELLED if is_cancelled else SUCCEEDED)

    return edit


def suspended(why: str) -> Edit:
    """The run ends before the design does: as was asked for, or to wait for another turn."""

    def edit(draft: Draft) -> None:
        match draft.job.state:
            case job_pb2.JOB_STATE_PAUSING:
                draft.move(PAUSED)
            case job_pb2.JOB_STATE_CANCELLING:
                draft.finish(progress_pb2.STOP_REASON_CANCELLED, CANCELLED)
            case _:
                draft.move(PENDING, message=why)

    return edit


class StoreCheckpointer:
    """Keeps a session's design as a job in a store. See `Sink`.

    Commits go on beside the next step; one at a time, at most one in `checkpoint_seconds`.
    """

    def __init__(
        self,
        environment: Environment,
        handle: JobHandle,
        session: DesignSession,
        live: LiveProgress,
        settings: RunSettings,
        *,
        last_sequence: int,
        refused: Iterable[int],
        why_suspended: Callable[[], str],
        on_failure: Callable[[], None],
    ) -> None:
        """`last_sequence` is that of the last progress event in the job's history: a designer that
        an older snapshot was taken of makes those after it again, and they are not told twice.

        `refused` are the revisions of damaged snapshots that the history tells of; `why_suspended`
        is a sentence for people. `on_failure` is called when a commit beside the steps has failed
        for good; `on_step` raises what went wrong.
        """
        self._environment = environment
        self._handle = handle
        self._session = session
        session.on_events = self._take
        self._live = live
        live.session = session
        self._settings = settings
        self._last_sequence = last_sequence
        self._told_of = set(refused)
        self._why_suspended = why_suspended
        self._on_failure = on_failure
        self._progress = progress_pb2.JobProgress()
        self._progress.CopyFrom(handle.job.progress)
        self._events: list[progress_pb2.ProgressEvent] = []
        self._epochs: list[job_pb2.JobEpoch] = []
        self._one_at_a_time = asyncio.Lock()
        self._last_saved = time.monotonic()
        self._task: asyncio.Task[None] | None = None

    @property
    def spec(self) -> spec_pb2.DesignSpec:
        """As it was last committed."""
        return self._handle.job.spec

    @contextmanager
    def step(self, request: evaluation_pb2.EvaluationRequest) -> Iterator[OnProgress]:
        with self._environment.observer.step(self._handle.job, request):
            self._live.began(request, self._session.designer)
            yield self._live.reported

    async def on_step(self, evaluation: Evaluation) -> None:
        """Has the step committed when it is time.

        Returns at once, unless a commit takes so long that the next one is due: then waits for it,
        so that no more than that can be lost. Raises what became of it.
        """
        self._live.evaluated(evaluation)
        task = self._task
        if task is not None:
            if not task.done():
                due = self._last_saved + 2 * self._settings.checkpoint_seconds
                is_overdue = due <= time.monotonic()
                await asyncio.wait({task}, timeout=None if is_overdue else 0)
            if task.done():
                self._task = None
                task.result()
        if self._task is None and self._events:
            self._task = asyncio.create_task(self._save_while_there_is_news())
            self._task.add_done_callback(self._ended)

    async def finish(self, reason: progress_pb2.StopReason, spec: spec_pb2.DesignSpec) -> bool:
        """Commits the end of the design; False if it was extended meanwhile."""
        try:
            await self.save(finished(reason, spec, self._session.designer.replayable_spec))
        except BudgetsChanged:
            return False
        return True

    async def suspend(self) -> None:
        """Commits what there is, and the state that the job waits or ends in."""
        await self.save(suspended(self._why_suspended()))

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
        while self._events:
            due = self._last_saved + self._settings.checkpoint_seconds
            await asyncio.sleep(due - time.monotonic())
            async with self._one_at_a_time:
                if self._events:
                    await self._save(lambda draft: None)

    async def _save(self, edit: Edit) -> None:
        progress = progress_pb2.JobProgress()

        def take() -> tuple[list[progress_pb2.ProgressEvent], list[job_pb2.JobEpoch], bytes]:
            # Complete up to the designer's present state, but for what only a clock knows.
            progress.CopyFrom(self._progress)
            measure(progress, self._session.designer)
            return [*self._events], [*self._epochs], self._session.designer.checkpoint()

        events, epochs, snapshot = await self._session.compute(take)

        def whole(draft: Draft) -> None:
            recoveries = draft.job.progress.recoveries
            draft.job.progress.CopyFrom(progress)
            draft.job.progress.recoveries = recoveries
            self._live.write(draft.job.progress, draft.job.spec.stop)
            draft.made_progress(events)
            draft.snapshot, draft.epochs = snapshot, epochs
            edit(draft)

        await self._handle.change(whole)
        del self._events[: len(events)]
        del self._epochs[: len(epochs)]
        self._last_saved = time.monotonic()
        await self._retire()

    async def _retire(self) -> None:
        """Old snapshots go once the new one has been read back and is what was committed."""
        environment, token = self._environment, self._handle.token
        if token is None:
            return
        try:
            damaged = await environment.threads.store(
                retire_snapshots,
                environment.store,
                self._handle.job_id,
                token,
                keep=self._settings.snapshots_kept,
            )
        except StoreError:
            # The next commit will find out what it means, and snapshots can wait.
            return
        news = [each for each in damaged if each.revision not in self._told_of]
        self._told_of.update(each.revision for each in news)

        def tell(draft: Draft) -> None:
            for each in news:
                draft.refused_snapshot(each.revision, each.why)

        await self._handle.change(tell)

    def _take(
        self,
        events: Sequence[progress_pb2.ProgressEvent],
        request: evaluation_pb2.EvaluationRequest | None,
        outcome: evaluation_pb2.EvaluationOutcome | None,
    ) -> None:
        for event in events:
            if event.HasField("epoch_finished"):
                # Epochs end with a validation.
                assert request is not None
                assert outcome is not None
                first, *others = map(from_native, self._session.designer.tables.values())
                self._epochs.append(
                    job_pb2.JobEpoch(
                        record=event.epoch_finished.record,
                        table=first,
                        companions=others,
                        time=self._environment.clock(),
                        cpu_seconds=event.cpu_seconds,
                        measured=throughput_delay(request, outcome),
                    )
                )
        follow(self._progress, events)
        self._events += [event for event in events if event.sequence > self._last_sequence]
