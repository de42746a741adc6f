"""Tests runs with several steps in flight: same design, and no evaluation left at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from library.tests.designer.recorded_design import RecordedDesign, finish, make_steps
from library.tests.designer.small_joint_spec import small_joint_spec
from remy_farm.designer import Designer
from remy_farm.designer.budgets import Elapsed
from remy_farm.driver.loop import DesignSession, Directive, RunLoop, Stopwatch
from remy_farm.driver.run import DesignRun, with_budget
from remy_farm.evaluation.interface import (
    Evaluation,
    EvaluationProgress,
    OnProgress,
    PacketLimitReached,
    Share,
    TaskQuarantined,
)
from remy_farm.evaluation.local import ThreadPoolEvaluator
from remy_proto.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_simulator.columns import evaluate_columns

_IN_FLIGHT = 4
_SPEC = small_joint_spec(edition=3, simulated_seconds=2, steps_in_flight=_IN_FLIGHT)


async def _do_nothing(_number: int) -> None:
    pass


class WatchedEvaluator(ThreadPoolEvaluator):
    """An evaluator that counts its requests, and awaits `before` with the number of each."""

    def __init__(self, before: Callable[[int], Awaitable[None]] = _do_nothing) -> None:
        super().__init__(1)
        self._before = before
        self.requests = 0
        self.running = 0
        self.max_running = 0
        self.cancelled = 0

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        self.requests += 1
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        try:
            await self._before(self.requests)
            return await self._evaluate(share, request, on_progress)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1

    async def _evaluate(self, share: Share, *asked: Any) -> Evaluation:
        return await super().evaluate(share, *asked)


def _table(out: Path) -> bytes:
    return (out / "remycc.json").read_bytes()


def test_the_design_does_not_depend_on_the_evaluator(tmp_path: Path) -> None:
    evaluator: list[WatchedEvaluator] = []

    def watched() -> WatchedEvaluator:
        evaluator.append(WatchedEvaluator())
        return evaluator[0]

    result = DesignRun(_SPEC, tmp_path / "watched", evaluator=watched).run()
    assert result.reason == progress_pb2.STOP_REASON_SCHEDULE_COMPLETE
    # During a validation, the next steps are in flight too.
    assert evaluator[0].max_running == _IN_FLIGHT + 1
    assert evaluator[0].cancelled == 0
    assert evaluator[0].requests == result.steps

    sequential = RecordedDesign(_SPEC, evaluate_columns)
    assert sequential.designer.table == result.table
    DesignRun(_SPEC, tmp_path / "threads", threads=2).run()
    assert _table(tmp_path / "threads") == _table(tmp_path / "watched")


@pytest.mark.parametrize("at", [1, 2, 4, 6, 11, 18])
def test_an_interrupted_run_cancels_all_evaluations(tmp_path: Path, at: int) -> None:
    async def interrupt(number: int) -> None:
        if number == at:
            run.interrupt()
            # Keeps the evaluation running until the run reacts. If it never does, the evaluation
            # ends all the same, and the test fails.
            await asyncio.sleep(10)

    DesignRun(_SPEC, tmp_path / "whole").run()
    evaluator = WatchedEvaluator(interrupt)
    run = DesignRun(_SPEC, tmp_path / "parts", evaluator=lambda: evaluator, checkpoint_seconds=0)
    interrupted = run.run()
    assert interrupted.reason is None
    assert interrupted.steps < at
    assert evaluator.cancelled > 0
    assert evaluator.running == 0
    DesignRun(_SPEC, tmp_path / "parts", resume=True).run()
    assert _table(tmp_path / "parts") == _table(tmp_path / "whole")


def test_a_failed_step_in_flight_fails_the_run_after_the_steps_before_it(tmp_path: Path) -> None:
    async def give_up(number: int) -> None:
        if number == 5:
            raise TaskQuarantined("a task killed 3 workers and was given up")

    evaluator = WatchedEvaluator(give_up)
    run = DesignRun(_SPEC, tmp_path / "out", evaluator=lambda: evaluator, checkpoint_seconds=0)
    with pytest.raises(TaskQuarantined, match="given up"):
        run.run()
    assert evaluator.running == 0
    stored = DesignRun(with_budget(_SPEC, max_steps=0), tmp_path / "out", resume=True)
    # The validation of the first table, and three steps of the first epoch.
    assert stored.run().steps == 4


class SendingEvaluator(WatchedEvaluator):
    """An evaluator whose evaluations of steps send 300 packets each and never end."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = asyncio.Event()
        self.reports = 0

    async def _evaluate(self, share: Share, *asked: Any) -> Evaluation:
        request, on_progress = asked
        if not request.candidates[0].HasField("perturbation"):
            return await super()._evaluate(replace(share, packet_limit=None), request)
        await asyncio.sleep(0)
        on_progress(EvaluationProgress(1, 2, 300))
        self.reports += 1
        self.changed.set()
        return await asyncio.Future()


class NullSink:
    """A sink that persists nothing, and the control of its run."""

    spec = _SPEC

    def __init__(self, directive: Callable[[], Directive], changed: asyncio.Event) -> None:
        self.directive = directive
        self.changed = changed
        self.is_suspended = False

    @contextmanager
    def step(self, request: evaluation_pb2.EvaluationRequest) -> Iterator[None]:
        yield

    async def on_step(self, evaluation: Evaluation) -> None:
        pass

    async def finish(self, reason: progress_pb2.StopReason, spec: spec_pb2.DesignSpec) -> bool:
        assert reason == progress_pb2.STOP_REASON_CANCELLED
        return True

    async def suspend(self) -> None:
        self.is_suspended = True


async def _send_within(limit: int) -> bool:
    """Runs steps in flight with a packet limit. Returns whether the run was suspended normally."""
    evaluator = SendingEvaluator()

    def directive() -> Directive:
        return Directive.SUSPEND if evaluator.reports == _IN_FLIGHT else Directive.CONTINUE

    control = NullSink(directive, evaluator.changed)
    session = DesignSession(Designer(_SPEC), _SPEC, Stopwatch(Elapsed()))
    loop = RunLoop(evaluator, control, lambda: Share("job", packet_limit=limit))
    try:
        await loop.run(session, control)
    finally:
        assert evaluator.running == 0
        await evaluator.close()
    return control.is_suspended


def test_the_packet_limit_applies_to_all_steps_in_flight_together() -> None:
    assert asyncio.run(_send_within(300 * _IN_FLIGHT))
    with pytest.raises(PacketLimitReached, match=rf"packets; {300 * _IN_FLIGHT - 1} are left"):
        asyncio.run(_send_within(300 * _IN_FLIGHT - 1))


async def _cancelled(at: int) -> Designer:
    evaluator = WatchedEvaluator()

    def directive() -> Directive:
        return Directive.CANCEL if evaluator.requests >= at else Directive.CONTINUE

    control = NullSink(directive, asyncio.Event())
    session = DesignSession(Designer(_SPEC), _SPEC, Stopwatch(Elapsed()))
    await RunLoop(evaluator, control, lambda: Share("job")).run(session, control)
    assert evaluator.running == 0
    await evaluator.close()
    return session.designer


@pytest.mark.parametrize("at", [2, 6, 7, 12, 20])
def test_a_cancelled_design_is_that_of_a_sequential_run(at: int) -> None:
    """The steps in flight do not count, and the closing evaluation is made."""
    cancelled = asyncio.run(_cancelled(at))
    sequential = Designer(_SPEC)
    make_steps(sequential, evaluate_columns, cancelled.steps)
    sequential.stop(progress_pb2.STOP_REASON_CANCELLED)
    finish(sequential, evaluate_columns)
    assert cancelled.table == sequential.table
    assert cancelled.evaluations == sequential.evaluations
