"""Checkpointing: restores a job's designer from store snapshots and commits its progress."""

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
from remy_services.jobs.progress import RateMeter, cost, update_from_designer, update_from_events
from remy_services.jobs.states import CANCELLED, CANCELLING, PAUSED, PENDING, SUCCEEDED, Draft
from remy_services.stores.contract import RefusedSnapshot, Snapshot, StoreError, retire_snapshots
from remy_simulator import RuleTable
from remy_simulator.messages import from_native, to_native


@dataclass(frozen=True)
class RunSettings:
    """Settings shared by all job runs of a coordinator."""

    #: Minimum interval between checkpoint commits. State changes are committed at once.
    checkpoint_seconds: float = 1.0
    #: Number of snapshots kept per job.
    snapshots_kept: int = 2
    #: Maximum number of packets that a job may simulate; None for no limit.
    maximum_packets: int | None = None
    #: Price used to estimate a job's cost; None disables the estimate.
    price_per_cpu_hour: float | None = None


class SnapshotsLost(Exception):
    """A started job has no usable snapshot. The message is one sentence for users."""


def restore_designer(
    record: job_pb2.JobRecord, snapshot: Snapshot | None, refused: Sequence[RefusedSnapshot]
) -> Designer:
    """Restores the designer from the newest intact snapshot, or creates one for a new job.

    `refused` are newer snapshots that are damaged. Raises SnapshotsLost, OtherVersionError for a
    snapshot of another version, or DesignerError.
    """
    first = first_table(record)
    if snapshot is None:
        if not refused and not record.job.HasField("start_time"):
            return Designer(record.job.spec, first_table=first)
        reasons = "; ".join(each.why for each in refused) or "the store has no snapshot"
        raise SnapshotsLost(f"the job cannot continue without a snapshot: {reasons}")
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
    """Returns the table with which the design started, or None for the search's default."""
    return to_native(record.first_table) if record.HasField("first_table") else None


class LiveProgress:
    """Progress of the running step: rates, clocks, and estimates of cost and remaining time."""

    def __init__(self, before: progress_pb2.JobProgress, price_per_cpu_hour: float | None) -> None:
        #: None until the designer has been restored.
        self.session: DesignSession | None = None
        self._price = price_per_cpu_hour
        self._meter = RateMeter(time.monotonic(), before.evaluations, before.simulated_packets)
        self._evaluations = before.evaluations
        self._packets = before.simulated_packets
        self._candidates = 0
        self._step_fraction = 0.0

    def start_request(self, request: evaluation_pb2.EvaluationRequest, designer: Designer) -> None:
        """Records that the evaluation of a request has started."""
        self._evaluations, self._packets = designer.evaluations, designer.simulated_packets
        self._candidates = len(request.candidates)
        self._step_fraction = 0.0

    def report(self, done: EvaluationProgress) -> None:
        """Records how much of the evaluation is done."""
        self._step_fraction = done.simulations_done / max(done.simulations, 1)
        self._meter.record_totals(
            time.monotonic(),
            self._evaluations + done.simulations_done,
            self._packets + done.simulated_packets,
        )

    def finish_request(self, evaluation: Evaluation) -> None:
        """Records which workers took part in a finished evaluation."""
        self._meter.record_workers(time.monotonic(), evaluation.workers)

    def write(self, progress: progress_pb2.JobProgress, stop: spec_pb2.Stop) -> None:
        """Fills in the live fields, including the estimated time left if it can be estimated."""
        now = time.monotonic()
        rates = self._meter.rates(now)
        progress.candidates = self._candidates
        progress.candidates_done = int(self._step_fraction * self._candidates)
        progress.evaluations_per_second = rates.evaluations
        progress.packets_per_second = rates.packets
        progress.workers = self._meter.workers(now)
        if self.session is not None:
            elapsed = self.session.stopwatch.elapsed()
            progress.cpu_seconds = elapsed.cpu_seconds
            progress.wall_seconds = elapsed.wall_seconds
        if self._price is not None:
            progress.estimated_cost = cost(progress.cpu_seconds, self._price)
        left = None if self.session is None else self.session.eta_seconds(stop, self._step_fraction)
        if left is None:
            progress.ClearField("eta_seconds")
        else:
            progress.eta_seconds = left


class BudgetsChanged(Exception):
    """The job's budgets changed while its last step was being committed."""


def finish_edit(
    reason: progress_pb2.StopReason, spec: spec_pb2.DesignSpec, replayable_spec: spec_pb2.DesignSpec
) -> Edit:
    """Returns the edit that ends a design run with `spec`.

    `replayable_spec` holds the worker schedule that reproduces the design. The edit raises
    BudgetsChanged if the job's specification is no longer `spec`.
    """

    def edit(draft: Draft) -> None:
        if draft.job.state != CANCELLING and draft.job.spec != spec:
            raise BudgetsChanged
        draft.job.spec.search.worker_schedule[:] = replayable_spec.search.worker_schedule
        is_cancelled = reason == progress_pb2.STOP_REASON_CANCELLED
        draft.finish(reason, CANCELLED if is_cancelled else SUCCEEDED)

    return edit


def suspend_edit(why: str) -> Edit:
    """Returns the edit that ends a run early: paused, cancelled, or back in the queue."""

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
    """Commits a design session to its job in the store. See `Sink`.

    A commit runs concurrently with the next step. At most one runs at a time and per
    `checkpoint_seconds`.
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
        """Attaches to the session's events.

        `last_sequence` is the last progress event in the job's history. A designer restored from an
        older snapshot repeats events up to it, and these are not committed again.
        `refused` are the revisions of damaged snapshots that are already in the history.
        `why_suspended` returns the reason shown to users. `on_failure` is called when a background
        commit has failed permanently; the next `on_step` raises its error.
        """
        self._environment = environment
        self._handle = handle
        self._session = session
        session.on_events = self._on_events
        self._live = live
        live.session = session
        self._settings = settings
        self._last_sequence = last_sequence
        self._recorded_refusals = set(refused)
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
        """The specification as last committed."""
        return self._handle.job.spec

    @contextmanager
    def step(self, request: evaluation_pb2.EvaluationRequest) -> Iterator[OnProgress]:
        with self._environment.observer.step(self._handle.job, request):
            self._live.start_request(request, self._session.designer)
            yield self._live.report

    async def on_step(self, evaluation: Evaluation) -> None:
        """Starts a commit if one is due.

        Waits for the running commit only if the next one is overdue, which bounds the loss in a
        crash. Raises the error of a failed commit.
        """
        self._live.finish_request(evaluation)
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
            self._task = asyncio.create_task(self._save_pending_events())
            self._task.add_done_callback(self._ended)

    async def finish(self, reason: progress_pb2.StopReason, spec: spec_pb2.DesignSpec) -> bool:
        """Commits the end of the design; returns False if the job was extended meanwhile."""
        try:
            await self.save(finish_edit(reason, spec, self._session.designer.replayable_spec))
        except BudgetsChanged:
            return False
        return True

    async def suspend(self) -> None:
        """Commits all pending progress and the state after suspension."""
        await self.save(suspend_edit(self._why_suspended()))

    async def save(self, edit: Edit) -> None:
        """Commits all pending progress together with `edit`, and passes on its exceptions."""
        async with self._one_at_a_time:
            await self._save(edit)

    async def close(self) -> None:
        """Cancels the background commit."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._on_failure()

    async def _save_pending_events(self) -> None:
        while self._events:
            due = self._last_saved + self._settings.checkpoint_seconds
            await asyncio.sleep(due - time.monotonic())
            async with self._one_at_a_time:
                if self._events:
                    await self._save(lambda draft: None)

    async def _save(self, edit: Edit) -> None:
        progress = progress_pb2.JobProgress()

        def take() -> tuple[list[progress_pb2.ProgressEvent], list[job_pb2.JobEpoch], bytes]:
            # Consistent with the designer's present state, except for wall-clock fields.
            progress.CopyFrom(self._progress)
            update_from_designer(progress, self._session.designer)
            return [*self._events], [*self._epochs], self._session.designer.checkpoint()

        events, epochs, snapshot = await self._session.compute(take)

        def apply(draft: Draft) -> None:
            recoveries = draft.job.progress.recoveries
            draft.job.progress.CopyFrom(progress)
            draft.job.progress.recoveries = recoveries
            self._live.write(draft.job.progress, draft.job.spec.stop)
            draft.add_progress_events(events)
            draft.snapshot, draft.epochs = snapshot, epochs
            edit(draft)

        await self._handle.change(apply)
        del self._events[: len(events)]
        del self._epochs[: len(epochs)]
        self._last_saved = time.monotonic()
        await self._retire()

    async def _retire(self) -> None:
        """Prunes old snapshots after reading back the new one and checking its hash."""
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
            # Pruning can wait; if the error persists, the next commit reports it.
            return
        damaged = [each for each in damaged if each.revision not in self._recorded_refusals]
        self._recorded_refusals.update(each.revision for each in damaged)

        def record_damage(draft: Draft) -> None:
            for each in damaged:
                draft.record_damaged_snapshot(each.revision, each.why)

        await self._handle.change(record_damage)

    def _on_events(
        self,
        events: Sequence[progress_pb2.ProgressEvent],
        request: evaluation_pb2.EvaluationRequest | None,
        outcome: evaluation_pb2.EvaluationOutcome | None,
    ) -> None:
        for event in events:
            if event.HasField("epoch_finished"):
                # An epoch ends with a validation, which has a request and an outcome.
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
        update_from_events(self._progress, events)
        self._events += [event for event in events if event.sequence > self._last_sequence]
