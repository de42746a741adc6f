"""One run of a job: from its turn to its end, or until it has to wait."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, auto

import structlog

from remy_farm.v1 import evaluation_pb2, job_pb2, progress_pb2, spec_pb2
from remy_services.coordinator.checkpointing import (
    Desk,
    LiveProgress,
    RunSettings,
    Saver,
    SnapshotsLost,
    Stopwatch,
    designer_of,
    first_table,
)
from remy_services.coordinator.job_handle import Edit, Environment, JobKeeper, patiently
from remy_services.coordinator.refusals import JobLost
from remy_services.designer import Designer, OtherVersionError
from remy_services.designer.budgets import Elapsed, Rehearsal, exhausted, is_by_budget
from remy_services.evaluation import (
    Evaluation,
    OnProgress,
    ResultsDiffer,
    Share,
    SharedEvaluator,
    TaskQuarantined,
)
from remy_services.jobs.states import (
    ACTIVE,
    CANCELLED,
    CANCELLING,
    FAILED,
    PAUSED,
    PAUSING,
    PENDING,
    RECOVERING,
    RUNNING,
    SCHEDULING,
    SUCCEEDED,
    Draft,
)
from remy_services.stores import RefusedSnapshot, newest_snapshot
from remy_simulator import InvalidRequest

# Why a job cannot go on, by what went wrong.


_log = structlog.get_logger()


class WorkLimitReached(Exception):
    """The job has simulated as much as one job may. One sentence for people."""


def check_work(packets: int, most: int | None) -> None:
    """Raises WorkLimitReached if a job has simulated more packets than one job may."""
    if most is not None and packets > most:
        raise WorkLimitReached(
            f"the job has simulated {packets} packets; at most {most} are allowed for one job here"
        )


_REASONS: tuple[tuple[type[Exception], job_pb2.FailureReason], ...] = (
    (SnapshotsLost, job_pb2.FAILURE_REASON_SNAPSHOTS_LOST),
    (OtherVersionError, job_pb2.FAILURE_REASON_OTHER_VERSION),
    (TaskQuarantined, job_pb2.FAILURE_REASON_TASK_QUARANTINED),
    (ResultsDiffer, job_pb2.FAILURE_REASON_RESULTS_DIFFER),
    (InvalidRequest, job_pb2.FAILURE_REASON_REQUEST_REFUSED),
    (WorkLimitReached, job_pb2.FAILURE_REASON_WORK_LIMIT),
)


def reason_for(error: Exception) -> tuple[job_pb2.FailureReason, str]:
    """The reason, and one sentence for people. What nobody expected goes to the log."""
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason, str(error)
    error_id = secrets.token_hex(4)
    _log.error("a job failed unexpectedly", error_id=error_id, exc_info=error)
    return job_pb2.FAILURE_REASON_INTERNAL, f"internal error, id {error_id} in the log"


# What a run is to do next, by what has become of its job and what it was told.


class Order(Enum):
    """Listed by urgency, the most urgent first."""

    #: Another coordinator has the job: touch nothing.
    VANISH = auto()
    #: Keep what there is, and end here.
    LEAVE = auto()
    #: Stop the design for good.
    STOP = auto()
    #: Make the evaluation that a stopped design ends with.
    CLOSE = auto()
    GO_ON = auto()


class Orders:
    """Heard between two steps, and during one when the bell rings."""

    def __init__(self, keeper: JobKeeper) -> None:
        self._keeper = keeper
        self.bell = asyncio.Event()
        #: One sentence for people; None while the run may stay.
        self.why_leave: str | None = None
        self._is_hurried = False
        self._has_stopped = False

    def leave(self, why: str) -> None:
        """The job is to wait for another turn."""
        self.why_leave = why
        self.bell.set()

    def hurry(self) -> None:
        """A design that is stopped for good is to end without its closing evaluation."""
        self._is_hurried = True
        self.bell.set()

    def stopped(self) -> None:
        """The order to stop is being obeyed."""
        self._has_stopped = True

    def next(self) -> Order:
        """What to do now."""
        if self._keeper.token is None:
            return Order.VANISH
        state = self._keeper.job.state
        if state == CANCELLING and not self._is_hurried:
            return Order.CLOSE if self._has_stopped else Order.STOP
        if state in (PAUSING, CANCELLING) or self.why_leave is not None:
            return Order.LEAVE
        return Order.GO_ON

    def interrupt(self) -> bool:
        """Whether the evaluation under way is to be given up."""
        return self.next() not in (Order.CLOSE, Order.GO_ON)


# An evaluation that may be given up.


async def evaluate_unless(
    given_up: Callable[[], bool],
    bell: asyncio.Event,
    evaluator: SharedEvaluator,
    share: Share,
    request: evaluation_pb2.EvaluationRequest,
    on_progress: OnProgress | None = None,
) -> Evaluation | None:
    """The request's evaluation; None if `given_up` says so, which is asked when the bell rings.

    Raises what the evaluator does.
    """
    evaluation = asyncio.create_task(evaluator.evaluate(share, request, on_progress))
    try:
        while not evaluation.done():
            if given_up():
                return None
            ring = asyncio.create_task(bell.wait())
            await asyncio.wait({evaluation, ring}, return_when=asyncio.FIRST_COMPLETED)
            ring.cancel()
            bell.clear()
        return evaluation.result()
    finally:
        evaluation.cancel()
        await asyncio.gather(evaluation, return_exceptions=True)


# What happens before a run's first step: the designer, and the length of its search.


# A step that took no time would buy any number of them.
_SHORTEST_STEP_SECONDS = 1e-6
_EVENTS_PER_PAGE = 1000
_BY_CLOCK = (progress_pb2.STOP_REASON_CPU_SECONDS, progress_pb2.STOP_REASON_WALL_SECONDS)

#: Evaluates a request; None if the run is to end.
Evaluate = Callable[[evaluation_pb2.EvaluationRequest], Awaitable[Evaluation | None]]


@dataclass(frozen=True)
class Begun:
    """A designer that is ready to go on."""

    designer: Designer
    #: What it goes by.
    spec: spec_pb2.DesignSpec
    #: Snapshots that could not be used, newest first.
    refused: tuple[RefusedSnapshot, ...]
    #: Of the last progress event in the history.
    last_sequence: int


async def begin(environment: Environment, keeper: JobKeeper, evaluate: Evaluate) -> Begun | None:
    """The job's designer; None if the run was to end meanwhile.

    Raises SnapshotsLost or DesignerError.
    """
    store, threads = environment.store, environment.threads
    snapshot, refused = await patiently(
        lambda: threads.store(newest_snapshot, store, keeper.job_id), on_trouble=keeper.in_trouble
    )
    keeper.well_again()
    record = keeper.record
    designer, spec = await threads.compute(designer_of, record, snapshot, refused), record.job.spec
    last_sequence = designer.event_sequence
    if snapshot is not None and refused:
        last_sequence = await _last_sequence(environment, keeper, snapshot.revision)
    if snapshot is None and is_by_budget(spec):
        resolved = await _rehearsed(environment, spec, evaluate)
        if resolved is None:
            return None
        spec = resolved
        designer = await threads.compute(Designer, spec, first_table=first_table(record))
    return Begun(designer, spec, tuple(refused), last_sequence)


def may_have_been_extended(
    job: job_pb2.Job, finished: progress_pb2.StopReason | None, elapsed: Elapsed
) -> bool:
    """Whether the job's budgets may let a designer go on that its snapshot left finished."""
    if job.state not in (RUNNING, CANCELLING):
        return False
    if finished in _BY_CLOCK:
        return exhausted(job.spec.stop, elapsed) is None
    return job.state == RUNNING or finished != progress_pb2.STOP_REASON_CANCELLED


async def _rehearsed(
    environment: Environment, spec: spec_pb2.DesignSpec, evaluate: Evaluate
) -> spec_pb2.DesignSpec | None:
    """The specification with steps in place of a budget."""
    compute = environment.threads.compute
    rehearsal = await compute(Rehearsal, spec)
    while (request := await compute(rehearsal.next_request)) is not None:
        evaluation = await evaluate(request)
        if evaluation is None:
            return None
        seconds = max(evaluation.cpu_seconds, _SHORTEST_STEP_SECONDS)
        await compute(rehearsal.receive, evaluation.outcome, seconds)
    return await compute(rehearsal.resolved)


async def _last_sequence(environment: Environment, keeper: JobKeeper, revision: int) -> int:
    """Of the last progress event after `revision`: the steps since the snapshot of that revision
    are made again, and are in the history already."""
    store, threads = environment.store, environment.threads
    last, after = 0, revision
    while True:
        page = await patiently(
            lambda after=after: threads.store(  # type: ignore[misc]
                store.events, keeper.job_id, after=after, limit=_EVENTS_PER_PAGE
            ),
            on_trouble=keeper.in_trouble,
        )
        for after, data in page:  # noqa: B007
            event = job_pb2.JobEvent.FromString(data)
            last = max(last, event.progress.sequence)
        if len(page) < _EVENTS_PER_PAGE:
            return last


# How a run begins and leaves its job: changes of the record, for the commits that do so.


class BudgetsChanged(Exception):
    """The job was extended while its design came to its end."""


def schedule(draft: Draft) -> None:
    """The job's turn has come."""
    if draft.job.state == PENDING:
        draft.move(SCHEDULING)


def started(environment: Environment, begun: Begun) -> Edit:
    """The designer is there. Whoever has asked for something else meanwhile is heard later."""

    def edit(draft: Draft) -> None:
        for refused in begun.refused:
            draft.refused_snapshot(refused.revision, refused.why)
        if begun.spec.search != draft.job.spec.search:
            draft.measured_length(begun.spec)
        if draft.job.state == RECOVERING:
            draft.recovered(begun.designer.steps, environment.name)
        if draft.job.state in (SCHEDULING, RECOVERING):
            draft.move(RUNNING)

    return edit


def finished(reason: progress_pb2.StopReason, spec: spec_pb2.DesignSpec) -> Edit:
    """The design that went by `spec` is finished. Raises BudgetsChanged if the job does not go by
    it any more."""

    def edit(draft: Draft) -> None:
        if draft.job.state != CANCELLING and draft.job.spec != spec:
            raise BudgetsChanged
        is_cancelled = reason == progress_pb2.STOP_REASON_CANCELLED
        draft.finish(reason, CANCELLED if is_cancelled else SUCCEEDED)

    return edit


def settled(why_leave: str) -> Edit:
    """The run ends before the design does: as was asked for, or to wait for another turn."""

    def edit(draft: Draft) -> None:
        match draft.job.state:
            case job_pb2.JOB_STATE_PAUSING:
                draft.move(PAUSED)
            case job_pb2.JOB_STATE_CANCELLING:
                draft.finish(progress_pb2.STOP_REASON_CANCELLED, CANCELLED)
            case _:
                draft.move(PENDING, message=why_leave)

    return edit


def failed(reason: job_pb2.FailureReason, message: str) -> Edit:
    """The job cannot go on."""

    def edit(draft: Draft) -> None:
        if draft.job.state in ACTIVE:
            draft.fail(reason, message, FAILED)

    return edit


# One run of a job: from its turn to its end, or until it has to wait.


class JobRun:
    """Drives the designer of one job that this coordinator holds."""

    def __init__(
        self,
        environment: Environment,
        keeper: JobKeeper,
        evaluator: SharedEvaluator,
        settings: RunSettings,
    ) -> None:
        self._environment = environment
        self._keeper = keeper
        self._evaluator = evaluator
        self._settings = settings
        self._orders = Orders(keeper)
        progress = keeper.job.progress
        self._stopwatch = Stopwatch(Elapsed(progress.wall_seconds, progress.cpu_seconds))
        self._live = LiveProgress(self._stopwatch, progress, settings.price_per_cpu_hour)
        self._desk: Desk | None = None
        self._saver: Saver | None = None

    def look(self) -> None:
        """The job's record has changed."""
        self._orders.bell.set()

    def leave(self, why: str) -> None:
        """Has the job keep what it has, and wait for another turn. `why` is for people."""
        self._orders.leave(why)

    def hurry(self) -> None:
        """A job that is being cancelled ends at once, without its closing evaluation."""
        self._orders.hurry()

    def write_live(self, progress: job_pb2.JobProgress) -> None:
        """Sets what is known besides what was committed."""
        self._live.write(progress)
        if self._desk is not None:
            self._live.write_eta(progress, self._keeper.job.spec.stop, self._desk)

    async def run(self) -> None:
        """Returns when the job is not active any more, or belongs to another coordinator."""
        try:
            await self._run()
        except JobLost:
            pass
        except Exception as error:
            await self._fail(error)
        finally:
            if self._saver is not None:
                await self._saver.close()

    async def _run(self) -> None:
        keeper = self._keeper
        if keeper.job.state == PENDING:
            await keeper.change(schedule)
        begun = await begin(self._environment, keeper, self._evaluate)
        if begun is None:
            await self._settle()
            return
        desk, saver = self._set_up(begun)
        await saver.save(started(self._environment, begun))
        if may_have_been_extended(keeper.job, desk.finished, self._stopwatch.elapsed()):
            await desk.reconsider(keeper.job.spec)
        while await self._step(desk, saver):
            pass

    def _set_up(self, begun: Begun) -> tuple[Desk, Saver]:
        record = self._keeper.record
        self._desk = Desk(
            self._environment,
            record.job.id,
            begun.designer,
            spec=begun.spec,
            first_table=first_table(record),
            progress=record.job.progress,
            last_sequence=begun.last_sequence,
            elapsed=self._stopwatch.elapsed,
        )
        self._saver = Saver(
            self._environment,
            self._keeper,
            self._desk,
            self.write_live,
            self._settings,
            refused=[each.revision for each in begun.refused],
            on_failure=self._orders.bell.set,
        )
        return self._desk, self._saver

    async def _step(self, desk: Desk, saver: Saver) -> bool:
        """One request and its outcome; False if the run is over."""
        order = self._orders.next()
        if order is Order.VANISH:
            return False
        if order is Order.LEAVE:
            await self._settle()
            return False
        if order is Order.STOP:
            self._orders.stopped()
            await desk.stop(progress_pb2.STOP_REASON_CANCELLED)
        if order is Order.GO_ON:
            await self._follow_budgets(desk)
        request = await desk.next_request()
        if request is None:
            return not await self._finish(desk, saver)
        with self._environment.observer.step(self._keeper.job, request):
            self._live.began(request, desk)
            evaluation = await self._evaluate(request)
            if evaluation is None:
                return True
            self._live.evaluated(evaluation)
            await desk.receive(evaluation.outcome)
        check_work(desk.simulated_packets, self._settings.maximum_packets)
        await saver.keep_up()
        saver.note()
        return True

    async def _follow_budgets(self, desk: Desk) -> None:
        spec = self._keeper.job.spec
        if spec != desk.spec:
            await desk.reconsider(spec)
        spent = exhausted(spec.stop, self._stopwatch.elapsed())
        if spent is not None:
            await desk.stop(spent)

    async def _evaluate(self, request: evaluation_pb2.EvaluationRequest) -> Evaluation | None:
        job = self._keeper.job
        return await evaluate_unless(
            self._orders.interrupt,
            self._orders.bell,
            self._evaluator,
            Share(job.id, job.priority, job.weight),
            request,
            self._live.reported,
        )

    async def _finish(self, desk: Desk, saver: Saver) -> bool:
        """Commits the end of the design; False if it was extended meanwhile."""
        reason = desk.finished
        assert reason is not None
        try:
            await saver.save(finished(reason, desk.spec))
        except BudgetsChanged:
            return False
        return True

    async def _settle(self) -> None:
        """Commits what there is, and the state that the job waits or ends in."""
        await self._save(settled(self._orders.why_leave or ""))

    async def _fail(self, error: Exception) -> None:
        fail = failed(*reason_for(error))
        with contextlib.suppress(JobLost):
            try:
                await self._save(fail)
            except JobLost:
                raise
            except Exception:
                # What the designer last said may be what is wrong.
                await self._keeper.change(fail)

    async def _save(self, edit: Edit) -> None:
        """Commits a change, with all that the designer has said if there is one."""
        await (self._saver.save(edit) if self._saver else self._keeper.change(edit))
