"""Tests that designs in a directory and on a farm stop alike.

The same budgets must stop both at the same step, with the same stop reason.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_farm.driver.directory import OutDirectory
from remy_farm.driver.loop import Directive, RunLoop
from remy_farm.driver.progress import read_events
from remy_farm.driver.run import DesignResult, DesignRun, with_budget
from remy_farm.evaluation.interface import Evaluation, OnProgress, Share, SharedEvaluator
from remy_farm.evaluation.local import ThreadPoolEvaluator
from remy_farm.files import FileError
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_services.coordinator.instrumentation import Instrumentation
from services.tests.coordinator.gates import Gate, GatedEvaluator
from services.tests.coordinator.running_server import Client, RunningServer, settings_for

_SPEC = small_joint_spec()
#: Wall-clock time of each evaluation, and its reported CPU time.
_WALL_SECONDS, _CPU_SECONDS = 3.0, 7.0


class FakeClock:
    """A clock that advances only when an evaluation ends."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class TimedEvaluator:
    """An evaluator whose evaluations take a fixed time on the fake clock."""

    def __init__(self, inner: SharedEvaluator, clock: FakeClock) -> None:
        self._inner = inner
        self._clock = clock
        self.status = inner.status
        self.worker_lines = inner.worker_lines
        self.close = inner.close

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        evaluation = await self._inner.evaluate(share, request, on_progress)
        self._clock.seconds += _WALL_SECONDS
        return replace(evaluation, cpu_seconds=_CPU_SECONDS)


def _in_a_directory(
    spec: spec_pb2.DesignSpec, out: Path, *, resume: bool = False
) -> tuple[DesignResult, bytes]:
    clock = FakeClock()
    run = DesignRun(
        spec,
        out,
        resume=resume,
        evaluator=lambda: TimedEvaluator(ThreadPoolEvaluator(), clock),
        clock=clock,
    )
    result = run.run()
    return result, OutDirectory(out).remycc_json.read_bytes()


def _with_fake_clock() -> Instrumentation:
    clock = FakeClock()
    return Instrumentation(evaluator=lambda inner: TimedEvaluator(inner, clock), clock=clock)


def _last_stop_reason(out: Path) -> progress_pb2.StopReason:
    return list(read_events(OutDirectory(out).progress))[-1].design_finished.reason


@pytest.mark.parametrize(
    ("stop", "reason", "steps"),
    [
        # The third step starts at 14 s; budgets are checked between steps.
        (spec_pb2.Stop(cpu_seconds=14.5), progress_pb2.STOP_REASON_CPU_SECONDS, 3),
        (spec_pb2.Stop(cpu_seconds=14), progress_pb2.STOP_REASON_CPU_SECONDS, 2),
        (spec_pb2.Stop(wall_seconds=9.5), progress_pb2.STOP_REASON_WALL_SECONDS, 4),
        (spec_pb2.Stop(cpu_seconds=100, wall_seconds=9), progress_pb2.STOP_REASON_WALL_SECONDS, 3),
        (spec_pb2.Stop(cpu_seconds=100, steps=2), progress_pb2.STOP_REASON_STEPS, 2),
    ],
)
def test_a_budget_stops_at_the_same_step_in_directory_and_farm(
    tmp_path: Path, stop: spec_pb2.Stop, reason: progress_pb2.StopReason, steps: int
) -> None:
    spec = spec_pb2.DesignSpec()
    spec.CopyFrom(_SPEC)
    spec.stop.CopyFrom(stop)
    result, table = _in_a_directory(spec, tmp_path / "out")
    assert (result.reason, result.steps) == (reason, steps)

    with RunningServer(settings_for(tmp_path), _with_fake_clock()) as server:
        client = server.client()
        job = client.until_final(client.submit(spec).id)
        assert (job.stop_reason, job.progress.step) == (reason, steps)
        assert client.remycc(job.id) == table
        assert job.progress.cpu_seconds == result.cpu_seconds
        assert job.progress.wall_seconds == result.wall_seconds


def _extend(client: Client, job: str, stop: spec_pb2.Stop) -> None:
    client.call("ExtendJob", messages.ExtendJobRequest(job=job, stop=stop))


@pytest.mark.parametrize(
    ("before", "after", "reason", "steps"),
    [
        # Each new limit is already reached, and the limit that stopped the design no longer is.
        (
            spec_pb2.Stop(cpu_seconds=14),
            spec_pb2.Stop(wall_seconds=1),
            progress_pb2.STOP_REASON_WALL_SECONDS,
            2,
        ),
        (
            spec_pb2.Stop(cpu_seconds=14),
            spec_pb2.Stop(steps=2),
            progress_pb2.STOP_REASON_STEPS,
            2,
        ),
        (
            spec_pb2.Stop(steps=2),
            spec_pb2.Stop(steps=9, cpu_seconds=1),
            progress_pb2.STOP_REASON_CPU_SECONDS,
            2,
        ),
        # This limit is not reached.
        (
            spec_pb2.Stop(wall_seconds=6),
            spec_pb2.Stop(wall_seconds=1000, steps=4),
            progress_pb2.STOP_REASON_STEPS,
            4,
        ),
    ],
)
def test_stop_reason_of_an_extended_design(
    tmp_path: Path,
    before: spec_pb2.Stop,
    after: spec_pb2.Stop,
    reason: progress_pb2.StopReason,
    steps: int,
) -> None:
    first, second = spec_pb2.DesignSpec(), spec_pb2.DesignSpec()
    first.CopyFrom(_SPEC)
    first.stop.CopyFrom(before)
    second.CopyFrom(_SPEC)
    second.stop.CopyFrom(after)
    out = tmp_path / "out"
    _in_a_directory(first, out)
    result, table = _in_a_directory(second, out, resume=True)
    assert (result.reason, result.steps) == (reason, steps)
    assert _last_stop_reason(out) == reason

    with RunningServer(settings_for(tmp_path), _with_fake_clock()) as server:
        client = server.client()
        job = client.until_final(client.submit(first).id)
        _extend(client, job.id, after)
        finished = client.until_final(job.id)
        assert (finished.stop_reason, finished.progress.step) == (reason, steps)
        assert client.remycc(job.id) == table


def test_a_directory_without_a_design_is_not_resumed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(FileError, match="holds no design to resume"):
        DesignRun(_SPEC, out, resume=True).run()
    assert not out.exists()


@pytest.mark.parametrize("resume", [False, True])
def test_a_directory_with_other_files_is_left_alone(tmp_path: Path, resume: bool) -> None:
    DesignRun(with_budget(_SPEC, max_steps=1), tmp_path).run()
    OutDirectory(tmp_path).checkpoint.unlink()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FileError, match=r"holds other files \(pareto\.csv, progress\.jsonl, "):
        DesignRun(_SPEC, tmp_path, resume=resume).run()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_unrelated_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").touch()
    with pytest.raises(FileError, match=r"holds other files \(letter\.txt\)"):
        DesignRun(_SPEC, tmp_path).run()
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


class _AlwaysContinue:
    def __init__(self) -> None:
        self.changed = asyncio.Event()

    def directive(self) -> Directive:
        return Directive.CONTINUE


def test_a_cancelled_loop_leaves_no_tasks() -> None:
    spec = spec_pb2.DesignSpec()
    spec.CopyFrom(_SPEC)
    spec.search.joint.cpu_seconds = 10

    async def cancelled() -> None:
        evaluator = GatedEvaluator(ThreadPoolEvaluator(), Gate())
        rehearsing = asyncio.create_task(
            RunLoop(evaluator, _AlwaysContinue(), lambda: Share("job", 1)).rehearse(spec)
        )
        async with asyncio.timeout(60):
            # This task, the rehearsal, its evaluation, and the task that waits for the control.
            while len(asyncio.all_tasks()) < 4:
                await asyncio.sleep(0)
        rehearsing.cancel()
        await asyncio.wait({rehearsing})
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        await evaluator.close()

    asyncio.run(cancelled())
