"""The run loop: one design, step by step, whoever evaluates for it and whatever keeps it.

A step is: ask the designer what to evaluate, have it evaluated, have the designer receive the
outcome, keep what it says, and only then show it. Around the steps the loop measures what a budget
of CPU time buys, stops the design when a budget is used up, has it make the evaluation that it
closes with, and hears what somebody asks for meanwhile. What differs between the command line and a
coordinator is where a design is kept: a `Sink` is a directory, or a job in a store.
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
    is_by_budget,
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

#: Tells seconds, and never goes back.
Clock = Callable[[], float]


class Stopwatch:
    """Goes on from what earlier runs have used; CPU time is what evaluators say that it took."""

    def __init__(self, before: Elapsed, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._wall_origin = clock() - before.wall_seconds
        self._cpu_seconds = before.cpu_seconds

    def add_cpu(self, seconds: float) -> None:
        """An evaluation took so much CPU time."""
        self._cpu_seconds += seconds

    def elapsed(self) -> Elapsed:
        """Time used up to now."""
        return Elapsed(
            wall_seconds=self._clock() - self._wall_origin, cpu_seconds=self._cpu_seconds
        )


_Result = TypeVar("_Result")

#: Carries out a call, here or in a thread.
Compute = Callable[[Callable[[], Any]], Awaitable[Any]]
#: Is told of the events that a call of the designer returned, with the times on them, before its
#: next call; after an evaluation also of the request and its outcome.
OnEvents = Callable[
    [
        Sequence[progress_pb2.ProgressEvent],
        evaluation_pb2.EvaluationRequest | None,
        evaluation_pb2.EvaluationOutcome | None,
    ],
    None,
]


async def compute_here(call: Callable[[], Any]) -> Any:
    """Carries out a call in the event loop."""
    return call()


class DesignSession:
    """A designer, what it goes by, and the time that it has used; computes one thing at a time."""

    def __init__(
        self,
        designer: Designer,
        spec: spec_pb2.DesignSpec,
        stopwatch: Stopwatch,
        *,
        first_table: RuleTable | None = None,
        compute: Compute = compute_here,
    ) -> None:
        #: Another one after `reconsider`; to be asked, not to be moved.
        self.designer = designer
        #: What the designer goes by.
        self.spec = spec
        self.stopwatch = stopwatch
        #: Whether the design was told to stop for good.
        self.is_cancelled = False
        #: Whoever keeps the design, called while nothing else is computed.
        self.on_events: OnEvents = lambda events, request, outcome: None
        self._first_table = first_table
        self._compute = compute
        self._one_at_a_time = asyncio.Lock()

    async def compute(self, call: Callable[[], _Result]) -> _Result:
        """The result of a call that finds the designer between two steps."""
        async with self._one_at_a_time:
            result: _Result = await self._compute(call)
        return result

    async def next_request(self) -> evaluation_pb2.EvaluationRequest | None:
        """What to evaluate next; None if the design is finished."""
        return await self.compute(self.designer.next_request)

    async def requests_ahead(self) -> Sequence[evaluation_pb2.EvaluationRequest]:
        """What to evaluate after it, as far as that is known and worth beginning."""
        if self.spec.search.joint.steps_in_flight <= 1:
            return ()
        return await self.compute(self.designer.requests_ahead)

    async def set_worker_threads(self, threads: int) -> None:
        """Tells the designer who is there, before a request."""
        await self.compute(lambda: self.designer.set_worker_threads(threads))

    async def receive(
        self, request: evaluation_pb2.EvaluationRequest, evaluation: Evaluation
    ) -> None:
        """Makes a step. Raises OutcomeError."""
        self.stopwatch.add_cpu(evaluation.cpu_seconds)
        outcome = evaluation.outcome
        await self.compute(lambda: self._tell(self.designer.receive(outcome), request, outcome))

    async def stop(self, reason: progress_pb2.StopReason) -> None:
        """Stops the design; one more evaluation may be due."""
        self.is_cancelled = reason == progress_pb2.STOP_REASON_CANCELLED
        await self.compute(lambda: self._tell(self.designer.stop(reason)))

    async def reconsider(self, spec: spec_pb2.DesignSpec) -> None:
        """Goes on with a specification that may have other budgets, or stops for what holds now.

        Raises CheckpointError.
        """
        self.is_cancelled = False
        await self.compute(lambda: self._reconsider(spec))

    async def heed_budgets(self, spec: spec_pb2.DesignSpec) -> None:
        """Goes by another specification from now on if it is one, and stops the design if a budget
        that needs a clock is used up."""
        if spec != self.spec:
            await self.reconsider(spec)
        spent = exhausted_budget(spec.stop, self.stopwatch.elapsed())
        if spent is not None:
            await self.stop(spent)

    def eta_seconds(self, stop: spec_pb2.Stop, share_of_step: float) -> float | None:
        """A guess at the wall time left when so much of the running step is done; None where there
        is nothing to go by."""
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
        self._tell(self.designer.reconsider(spent))

    def _tell(
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
    """Listed by urgency, the most urgent first."""

    #: Somebody else has the design: touch nothing.
    ABANDON = auto()
    #: Keep what there is, and end here.
    SUSPEND = auto()
    #: Stop the design for good, after the evaluation that a stopped design closes with.
    CANCEL = auto()
    CONTINUE = auto()


class Control(Protocol):
    """Is asked between two steps, and during one when it says that something has changed."""

    @property
    def changed(self) -> asyncio.Event:
        """Set when there may be another directive; cleared by the loop."""

    def directive(self) -> Directive:
        """What to do now."""


class Sink(Protocol):
    """Keeps a design; is the session's `on_events` besides."""

    @property
    def spec(self) -> spec_pb2.DesignSpec:
        """What the design is to go by; its budgets may change while it runs."""

    def step(
        self, request: evaluation_pb2.EvaluationRequest
    ) -> AbstractContextManager[OnProgress | None]:
        """Surrounds a request's evaluation and the step that it makes; told how far it is."""

    async def stepped(self, evaluation: Evaluation) -> None:
        """A step was made. Raises what has become of keeping it, and of those before."""

    async def finish(self, reason: progress_pb2.StopReason, spec: spec_pb2.DesignSpec) -> bool:
        """The design that went by `spec` is finished, and is kept; False if it is to go on."""

    async def suspend(self) -> None:
        """The design is not finished; what there is of it is kept."""


# A step that took no time would buy any number of them.
_SHORTEST_STEP_SECONDS = 1e-6


async def changed_or_done(
    changed: asyncio.Event,
    tasks: Iterable[asyncio.Future[Any]],
    timeout_seconds: float | None = None,
) -> None:
    """Returns when `changed` is set, one of the tasks is done, or time is up; clears `changed`."""
    change = asyncio.create_task(changed.wait())
    try:
        await asyncio.wait(
            {change, *tasks}, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        change.cancel()
    changed.clear()


class _UnderWay:
    """An evaluation that was begun."""

    def __init__(
        self,
        evaluator: SharedEvaluator,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        check: Callable[[], None],
    ) -> None:
        """`check` is called whenever more packets were sent."""
        self.request = request
        #: Sent in it so far.
        self.packets = 0
        #: Told how far it is, once somebody waits for it.
        self.on_progress: OnProgress | None = None
        self._check = check
        self.task = asyncio.ensure_future(evaluator.evaluate(share, request, self._report))

    def _report(self, progress: EvaluationProgress) -> None:
        self.packets = progress.simulated_packets
        self._check()
        if self.on_progress is not None:
            self.on_progress(progress)


class RunLoop:
    """Carries requests to an evaluator and outcomes back, as long as its control lets it."""

    def __init__(
        self,
        evaluator: SharedEvaluator,
        control: Control,
        share: Callable[[], Share],
        *,
        compute: Compute = compute_here,
    ) -> None:
        """`share` says, before each evaluation, what part of the evaluator the design may have."""
        self._evaluator = evaluator
        self._control = control
        self._share = share
        self._compute = compute
        # The next step's, and those of the steps behind it.
        self._under_way: list[_UnderWay] = []

    async def rehearse(
        self, spec: spec_pb2.DesignSpec, on_progress: OnProgress | None = None
    ) -> spec_pb2.DesignSpec | None:
        """The specification with `search.joint.steps` in place of a budget of CPU time or packets,
        and itself if it has none; None if the run was to end meanwhile.

        The CPU time of a step is what its evaluation took, as evaluators say.
        """
        if not is_by_budget(spec):
            return spec
        rehearsal: Rehearsal = await self._compute(lambda: Rehearsal(spec))
        while (request := await self._compute(rehearsal.next_request)) is not None:
            evaluation = await self._evaluated(
                request, on_progress, lambda: self._control.directive() is Directive.CONTINUE
            )
            if evaluation is None:
                return None
            seconds = max(evaluation.cpu_seconds, _SHORTEST_STEP_SECONDS)
            outcome = evaluation.outcome
            await self._compute(lambda: rehearsal.receive(outcome, seconds))  # noqa: B023
        resolved: spec_pb2.DesignSpec = await self._compute(rehearsal.spec_with_steps)
        return resolved

    async def run(self, session: DesignSession, sink: Sink) -> None:
        """Returns when the design is finished, or its control has the run end.

        Raises what the sink and the evaluator raise, and DesignerError.
        """
        try:
            await self._run(session, sink)
        finally:
            await self._withdraw_others([])

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
                await session.heed_budgets(sink.spec)
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
                self._begin(request)
                ahead = await session.requests_ahead()
                for following in ahead:
                    self._begin(following)
                await self._withdraw_others([request, *ahead])
                evaluation = await self._evaluated(
                    request, on_progress, lambda: self._is_wanted(session)
                )
                if evaluation is None:
                    continue
                await session.receive(request, evaluation)
            await sink.stepped(evaluation)

    def _is_wanted(self, session: DesignSession) -> bool:
        """Whether the evaluation under way is."""
        directive = self._control.directive()
        return directive is Directive.CONTINUE or (
            directive is Directive.CANCEL and session.is_cancelled
        )

    def _begin(self, request: evaluation_pb2.EvaluationRequest) -> _UnderWay:
        """The request's evaluation, begun now if it is not under way."""
        for each in self._under_way:
            if each.request is request:
                return each
        begun = _UnderWay(self._evaluator, self._share(), request, self._check_limit)
        self._under_way.append(begun)
        return begun

    def _check_limit(self) -> None:
        """Raises PacketLimitReached where those under way have sent more packets together than the
        design may; that none does alone is the evaluator's to check."""
        limit = self._share().packet_limit
        packets = sum(each.packets for each in self._under_way)
        if limit is not None and packets > limit:
            raise PacketLimitReached(
                f"the steps in flight send more packets than the {limit} that are left to them"
            )

    async def _withdraw_others(self, wanted: Sequence[evaluation_pb2.EvaluationRequest]) -> None:
        """Withdraws what is under way and not wanted."""
        for each in [*self._under_way]:
            if not any(each.request is request for request in wanted):
                await self._withdraw(each)

    async def _withdraw(self, evaluation: _UnderWay) -> None:
        self._under_way.remove(evaluation)
        evaluation.task.cancel()
        await asyncio.gather(evaluation.task, return_exceptions=True)

    async def _evaluated(
        self,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None,
        is_wanted: Callable[[], bool],
    ) -> Evaluation | None:
        """The request's evaluation; None, and it is withdrawn, once it is not wanted.

        Raises what the evaluator does.
        """
        evaluation = self._begin(request)
        evaluation.on_progress = on_progress
        try:
            while not evaluation.task.done():
                if not is_wanted():
                    return None
                tasks = [each.task for each in self._under_way]
                for task in tasks:
                    if task.done() and isinstance(task.exception(), PacketLimitReached):
                        task.result()
                running = [task for task in tasks if not task.done()]
                await changed_or_done(self._control.changed, running)
            return evaluation.task.result()
        finally:
            await self._withdraw(evaluation)
