"""A run with several steps under way at once: the same design, and nothing left when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from library.tests.designer.small_joint_spec import small_joint_spec
from library.tests.designer.walk import Walk, finish, make_steps
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


async def _go_on(_number: int) -> None:
    pass


class WatchedEvaluator(ThreadPoolEvaluator):
    """Awaits `before` with the number of each request, from 1."""

    def __init__(self, before: Callable[[int], Awaitable[None]] = _go_on) -> None:
        super().__init__(1)
        self._before = before
        self.requests = 0
        self.under_way = 0
        self.most_under_way = 0
        self.withdrawn = 0

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        self.requests += 1
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self._before(self.requests)
            return await self._evaluate(share, request, on_progress)
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise
        finally:
            self.under_way -= 1

    async def _evaluate(self, share: Share, *asked: Any) -> Evaluation:
        return await super().evaluate(share, *asked)


def _table(out: Path) -> bytes:
    return (out / "remycc.json").read_bytes()


def test_a_design_is_the_same_whoever_evaluates_it(tmp_path: Path) -> None:
    evaluator: list[WatchedEvaluator] = []

    def watched() -> WatchedEvaluator:
        evaluator.append(WatchedEvaluator())
        return evaluator[0]

    result = DesignRun(_SPEC, tmp_path / "watched", evaluator=watched).run()
    assert result.reason == progress_pb2.STOP_REASON_SCHEDULE_COMPLETE
    # While an epoch's validation is evaluated, as many steps are.
    assert evaluator[0].most_under_way == _IN_FLIGHT + 1
    assert evaluator[0].withdrawn == 0
    assert evaluator[0].requests == result.steps

    one_after_another = Walk(_SPEC, evaluate_columns)
    assert one_after_another.designer.table == result.table
    DesignRun(_SPEC, tmp_path / "threads", threads=2).run()
    assert _table(tmp_path / "threads") == _table(tmp_path / "watched")


@pytest.mark.parametrize("at", [1, 2, 4, 6, 11, 18])
def test_an_interrupted_run_withdraws_all_that_is_under_way(tmp_path: Path, at: int) -> None:
    async def interrupt(number: int) -> None:
        if number == at:
            run.interrupt()
            # An evaluation that had ended by the time the run looks would be made a step; one of a
            # run that does not look ends at last, so that the test fails.
            await asyncio.sleep(10)

    DesignRun(_SPEC, tmp_path / "whole").run()
    evaluator = WatchedEvaluator(interrupt)
    run = DesignRun(_SPEC, tmp_path / "parts", evaluator=lambda: evaluator, checkpoint_seconds=0)
    interrupted = run.run()
    assert interrupted.reason is None
    assert interrupted.steps < at
    assert evaluator.withdrawn > 0
    assert evaluator.under_way == 0
    DesignRun(_SPEC, tmp_path / "parts", resume=True).run()
    assert _table(tmp_path / "parts") == _table(tmp_path / "whole")


def test_a_step_that_fails_ahead_of_its_turn_fails_the_run_in_its_turn(tmp_path: Path) -> None:
    async def give_up(number: int) -> None:
        if number == 5:
            raise TaskQuarantined("a task killed 3 workers and was given up")

    evaluator = WatchedEvaluator(give_up)
    run = DesignRun(_SPEC, tmp_path / "out", evaluator=lambda: evaluator, checkpoint_seconds=0)
    with pytest.raises(TaskQuarantined, match="given up"):
        run.run()
    assert evaluator.under_way == 0
    kept = DesignRun(with_budget(_SPEC, max_steps=0), tmp_path / "out", resume=True)
    # The validation of the first table, and three steps of the first epoch.
    assert kept.run().steps == 4


class SendingEvaluator(WatchedEvaluator):
    """Its evaluations, but for validations, send 300 packets each and never end."""

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
    """A sink that keeps nothing, and its run's control."""

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
    """Whether all steps in flight may send what they do."""
    evaluator = SendingEvaluator()

    def directive() -> Directive:
        return Directive.SUSPEND if evaluator.reports == _IN_FLIGHT else Directive.CONTINUE

    control = NullSink(directive, evaluator.changed)
    session = DesignSession(Designer(_SPEC), _SPEC, Stopwatch(Elapsed()))
    loop = RunLoop(evaluator, control, lambda: Share("job", packet_limit=limit))
    try:
        await loop.run(session, control)
    finally:
        assert evaluator.under_way == 0
        await evaluator.close()
    return control.is_suspended


def test_all_steps_in_flight_are_together_within_the_limit_of_packets() -> None:
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
    assert evaluator.under_way == 0
    await evaluator.close()
    return session.designer


@pytest.mark.parametrize("at", [2, 6, 7, 12, 20])
def test_a_cancelled_design_closes_with_what_it_asks_for_then(at: int) -> None:
    """And counts nothing of what was under way."""
    cancelled = asyncio.run(_cancelled(at))
    one_after_another = Designer(_SPEC)
    make_steps(one_after_another, evaluate_columns, cancelled.steps)
    one_after_another.stop(progress_pb2.STOP_REASON_CANCELLED)
    finish(one_after_another, evaluate_columns)
    assert cancelled.table == one_after_another.table
    assert cancelled.evaluations == one_after_another.evaluations
