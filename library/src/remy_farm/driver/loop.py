"""The run loop of a design, which the command line and the coordinator share.

In each step the loop asks the designer for a request, has it evaluated, passes the outcome to the
designer, and has the result persisted before it is reported. The loop also measures how many steps
a budget of CPU time allows, stops the design when a budget is used up, makes the closing
evaluation, and reacts to requests to stop. A design is persisted by a `Sink`: a directory, or a job
in a store.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from enum import Enum, auto
from typing import Any, Protocol, TypeVar

from remy_farm.designer import Designer
from remy_farm.designer.budgets import (
    Elapsed,
    Rehearsal,
    estimate_seconds_left,
    exhausted_budget,
    is_limited_by_budget,
)
from remy_farm.evaluation.interface import (
    Evaluation,
    EvaluationProgress,
    OnProgress,
    PacketLimitReached,
    Share,
    SharedEvaluator,
)
from remy_proto.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_simulator import RuleTable

#: A monotonic clock, in seconds.
Clock = Callable[[], float]


class Stopwatch:
    """Measures the time that a design has used, including its earlier runs.

    CPU time is the sum that evaluators report.
    """

    def __init__(self, before: Elapsed, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._wall_origin = clock() - before.wall_seconds
        self._cpu_seconds = before.cpu_seconds

    def add_cpu(self, seconds: float) -> None:
        """Adds the CPU time of an evaluation."""
        self._cpu_seconds += seconds

    def elapsed(self) -> Elapsed:
        """Returns the time used so far."""
        return Elapsed(
            wall_seconds=self._clock() - self._wall_origin, cpu_seconds=self._cpu_seconds
        )


_Result = TypeVar("_Result")

#: Runs a function, in the event loop or in a thread, and returns its result.
Compute = Callable[[Callable[[], Any]], Awaitable[Any]]
#: Receives the events that a call of the designer returned, with their times set, before the next
#: call. After an evaluation it also receives the request and the outcome.
OnEvents = Callable[
    [
        Sequence[progress_pb2.ProgressEvent],
        evaluation_pb2.EvaluationRequest | None,
        evaluation_pb2.EvaluationOutcome | None,
    ],
    None,
]


async def compute_here(call: Callable[[], Any]) -> Any:
    """Runs a function in the event loop."""
    return call()


class DesignSession:
    """A designer with its specification and stopwatch; runs one computation at a time."""

    def __init__(
        self,
        designer: Designer,
        spec: spec_pb2.DesignSpec,
        stopwatch: Stopwatch,
        *,
        first_table: RuleTable | None = None,
        compute: Compute = compute_here,
    ) -> None:
        #: Read-only; `reconsider` replaces it.
        self.designer = designer
        #: The designer's current specification.
        self.spec = spec
        self.stopwatch = stopwatch
        #: Whether the design was cancelled.
        self.is_cancelled = False
        #: Called with the events of each computation, before another one starts.
        self.on_events: OnEvents = lambda events, request, outcome: None
        self._first_table = first_table
        self._compute = compute
        self._one_at_a_time = asyncio.Lock()

    async def compute(self, call: Callable[[], _Result]) -> _Result:
        """Runs a function while no other one uses the designer, and returns its result."""
        async with self._one_at_a_time:
            result: _Result = await self._compute(call)
        return result

    async def next_request(self) -> evaluation_pb2.EvaluationRequest | None:
        """Returns the next request; None if the design is finished."""
        return await self.compute(self.designer.next_request)

    async def requests_ahead(self) -> Sequence[evaluation_pb2.EvaluationRequest]:
        """Returns the requests to evaluate in advance; none unless `steps_in_flight` allows it."""
        if self.spec.search.joint.steps_in_flight <= 1:
            return ()
        return await self.compute(self.designer.requests_ahead)

    async def set_worker_threads(self, threads: int) -> None:
        """Sets the number of worker threads that the next step is sized for."""
        await self.compute(lambda: self.designer.set_worker_threads(threads))

    async def receive(
        self, request: evaluation_pb2.EvaluationRequest, evaluation: Evaluation
    ) -> None:
        """Makes a step from an evaluation. Raises OutcomeError."""
        self.stopwatch.add_cpu(evaluation.cpu_seconds)
        outcome = evaluation.outcome
        await self.compute(lambda: self._emit(self.designer.receive(outcome), request, outcome))

    async def stop(self, reason: progress_pb2.StopReason) -> None:
        """Stops the design. A closing evaluation may follow."""
        self.is_cancelled = reason == progress_pb2.STOP_REASON_CANCELLED
        await self.compute(lambda: self._emit(self.designer.stop(reason)))

    async def reconsider(self, spec: spec_pb2.DesignSpec) -> None:
        """Continues or stops the design according to the budgets of a specification.

        Raises CheckpointError if the specification differs in more than its budgets.
        """
        self.is_cancelled = False
        await self.compute(lambda: self._reconsider(spec))

    async def apply_budgets(self, spec: spec_pb2.DesignSpec) -> None:
        """Reconsiders the design if the specification changed, and stops it if time is used up."""
        if spec != self.spec:
            await self.reconsider(spec)
        spent = exhausted_budget(spec.stop, self.stopwatch.elapsed())
        if spent is not None:
            await self.stop(spent)

    def eta_seconds(self, stop: spec_pb2.Stop, share_of_step: float) -> float | None:
        """Estimates the remaining wall time in seconds; None if no budget allows an estimate.

        `share_of_step` is the finished share of the running step.
        """
        return estimate_seconds_left(
            stop,
            self.stopwatch.elapsed(),
            steps=self.designer.steps + share_of_step,
            epochs=len(self.designer.epochs),
            share_done=self.designer.share_done,
        )

    def _reconsider(self, spec: spec_pb2.DesignSpec) -> None:
        if spec != self.spec:
            data = self.designer.checkpoint()
            self.designer = Designer.resume(spec, data, first_table=self._first_table)
            self.spec = spec
        spent = exhausted_budget(spec.stop, self.stopwatch.elapsed())
        self._emit(self.designer.reconsider(spent))

    def _emit(
        self,
        events: Sequence[progress_pb2.ProgressEvent],
        request: evaluation_pb2.EvaluationRequest | None = None,
        outcome: evaluation_pb2.EvaluationOutcome | None = None,
    ) -> None:
        elapsed = self.stopwatch.elapsed()
        for event in events:
            event.wall_seconds = elapsed.wall_seconds
            event.cpu_seconds = elapsed.cpu_seconds
        self.on_events(events, request, outcome)


class Directive(Enum):
    """An instruction to the run loop; the most urgent is listed first."""

    #: Return at once and persist nothing: another process owns the design.
    ABANDON = auto()
    #: Persist the design and return.
    SUSPEND = auto()
    #: Stop the design, make its closing evaluation, and finish it.
    CANCEL = auto()
    CONTINUE = auto()


class Control(Protocol):
    """Gives the run loop its directives."""

    @property
    def changed(self) -> asyncio.Event:
        """Set when the directive may have changed; the loop clears it."""

    def directive(self) -> Directive:
        """Returns the current directive. The loop calls it between steps and after a change."""


class Sink(Protocol):
    """Persists a design. It also sets the session's `on_events`."""

    @property
    def spec(self) -> spec_pb2.DesignSpec:
        """The current specification; its budgets may change while the design runs."""

    def step(
        self, request: evaluation_pb2.EvaluationRequest
    ) -> AbstractContextManager[OnProgress | None]:
        """Returns a context for a request's evaluation and step.

        The context's value receives the progress of the evaluation, unless it is None.
        """

    async def on_step(self, evaluation: Evaluation) -> None:
        """Is called after each step. Raises errors of persisting this step or an earlier one."""

    async def finish(self, reason: progress_pb2.StopReason, spec: spec_pb2.DesignSpec) -> bool:
        """Persists a finished design, made with `spec`. Returns False if it must continue."""

    async def suspend(self) -> None:
        """Persists a design that is not finished."""


# Lower limit of the measured CPU time of a step; with 0 any budget would allow infinitely many.
_MIN_STEP_SECONDS = 1e-6


async def changed_or_done(
    changed: asyncio.Event,
    tasks: Iterable[asyncio.Future[Any]],
    timeout_seconds: float | None = None,
) -> None:
    """Waits until `changed` is set, one of the tasks is done, or time is up; clears `changed`."""
    change = asyncio.create_task(changed.wait())
    try:
        await asyncio.wait(
            {change, *tasks}, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        change.cancel()
    changed.clear()


class _RunningEvaluation:
    """An evaluation that was started."""

    def __init__(
        self,
        evaluator: SharedEvaluator,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        check: Callable[[], None],
    ) -> None:
        """`check` is called at each report of progress."""
        self.request = request
        #: Packets sent so far.
        self.packets = 0
        #: Receives the progress of the evaluation; None while it is evaluated in advance.
        self.on_progress: OnProgress | None = None
        self._check = check
        self.task = asyncio.ensure_future(evaluator.evaluate(share, request, self._report))

    def _report(self, progress: EvaluationProgress) -> None:
        self.packets = progress.simulated_packets
        self._check()
        if self.on_progress is not None:
            self.on_progress(progress)


class RunLoop:
    """Runs designs on an evaluator until they are finished or the control ends the run."""

    def __init__(
        self,
        evaluator: SharedEvaluator,
        control: Control,
        share: Callable[[], Share],
        *,
        compute: Compute = compute_here,
    ) -> None:
        """`share` is called before each evaluation, and returns the design's share of workers."""
        self._evaluator = evaluator
        self._control = control
        self._share = share
        self._compute = compute
        # The evaluation of the current step, and those of later steps.
        self._running: list[_RunningEvaluation] = []

    async def rehearse(
        self, spec: spec_pb2.DesignSpec, on_progress: OnProgress | None = None
    ) -> spec_pb2.DesignSpec | None:
        """Converts a budget of CPU time or packets into `search.joint.steps`, by a rehearsal.

        Returns the specification unchanged if it has no such budget, and None if the control ended
        the run.
        """
        if not is_limited_by_budget(spec):
            return spec
        rehearsal: Rehearsal = await self._compute(lambda: Rehearsal(spec))
        while (request := await self._compute(rehearsal.next_request)) is not None:
            evaluation = await self._evaluate(
                request, on_progress, lambda: self._control.directive() is Directive.CONTINUE
            )
            if evaluation is None:
                return None
            seconds = max(evaluation.cpu_seconds, _MIN_STEP_SECONDS)
            outcome = evaluation.outcome
            await self._compute(lambda: rehearsal.receive(outcome, seconds))  # noqa: B023
        resolved: spec_pb2.DesignSpec = await self._compute(rehearsal.spec_with_steps)
        return resolved

    async def run(self, session: DesignSession, sink: Sink) -> None:
        """Runs the design until it is finished or the control ends the run.

        Raises DesignerError, and the errors of the sink and of the evaluator.
        """
        try:
            await self._run(session, sink)
        finally:
            await self._cancel_except([])

    async def _run(self, session: DesignSession, sink: Sink) -> None:
        was_cancelled = session.designer.finished == progress_pb2.STOP_REASON_CANCELLED
        if not (was_cancelled and self._control.directive() is Directive.CANCEL):
            await session.reconsider(sink.spec)
        while (directive := self._control.directive()) is not Directive.ABANDON:
            if directive is Directive.SUSPEND:
                await sink.suspend()
                return
            if directive is Directive.CANCEL:
                await session.stop(progress_pb2.STOP_REASON_CANCELLED)
            else:
                await session.apply_budgets(sink.spec)
            if session.spec.search.follow_workers:
                await session.set_worker_threads(self._evaluator.status().threads)
            request = await session.next_request()
            if request is None:
                reason = session.designer.finished
                assert reason is not None
                if await sink.finish(reason, session.spec):
                    return
                continue
            with sink.step(request) as on_progress:
                self._start(request)
                ahead = await session.requests_ahead()
                for following in ahead:
                    self._start(following)
                await self._cancel_except([request, *ahead])
                evaluation = await self._evaluate(
                    request, on_progress, lambda: self._is_needed(session)
                )
                if evaluation is None:
                    continue
                await session.receive(request, evaluation)
            await sink.on_step(evaluation)

    def _is_needed(self, session: DesignSession) -> bool:
        """Tells whether the outcome of the running evaluation is still needed."""
        directive = self._control.directive()
        return directive is Directive.CONTINUE or (
            directive is Directive.CANCEL and session.is_cancelled
        )

    def _start(self, request: evaluation_pb2.EvaluationRequest) -> _RunningEvaluation:
        """Returns the evaluation of a request, which it starts unless it is running."""
        for each in self._running:
            if each.request is request:
                return each
        started = _RunningEvaluation(self._evaluator, self._share(), request, self._check_limit)
        self._running.append(started)
        return started

    def _check_limit(self) -> None:
        """Raises PacketLimitReached if all running evaluations together exceed the packet limit.

        The evaluator checks each evaluation by itself.
        """
        limit = self._share().packet_limit
        packets = sum(each.packets for each in self._running)
        if limit is not None and packets > limit:
            raise PacketLimitReached(
                f"the steps in flight have sent {packets} packets; {limit} are left to them"
            )

    async def _cancel_except(self, needed: Sequence[evaluation_pb2.EvaluationRequest]) -> None:
        """Cancels all running evaluations but those of the given requests."""
        for each in [*self._running]:
            if not any(each.request is request for request in needed):
                await self._cancel(each)

    async def _cancel(self, evaluation: _RunningEvaluation) -> None:
        self._running.remove(evaluation)
        evaluation.task.cancel()
        await asyncio.gather(evaluation.task, return_exceptions=True)

    async def _evaluate(
        self,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None,
        is_needed: Callable[[], bool],
    ) -> Evaluation | None:
        """Evaluates a request. Cancels the evaluation, and returns None, once it is not needed.

        Raises the errors of the evaluator.
        """
        evaluation = self._start(request)
        evaluation.on_progress = on_progress
        try:
            while not evaluation.task.done():
                if not is_needed():
                    return None
                tasks = [each.task for each in self._running]
                for task in tasks:
                    if task.done() and isinstance(task.exception(), PacketLimitReached):
                        task.result()
                running = [task for task in tasks if not task.done()]
                await changed_or_done(self._control.changed, running)
            return evaluation.task.result()
        finally:
            await self._cancel(evaluation)
