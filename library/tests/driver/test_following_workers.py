"""Designs whose steps are as wide as there are workers, and the same designs made elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from library.tests.designer.small_joint_spec import small_joint_spec
from library.tests.designer.walk import specimen_keys, table_bytes
from remy_farm.designer import Designer
from remy_farm.driver.run import DesignRun
from remy_farm.evaluation.interface import (
    Evaluation,
    EvaluatorStatus,
    OnProgress,
    Share,
    WorkerLine,
)
from remy_farm.evaluation.local import ThreadPoolEvaluator
from remy_farm.specification import load_spec, parse_spec
from remy_farm.specification.writing import to_yaml
from remy_proto.v1 import evaluation_pb2, progress_pb2, spec_pb2
from remy_simulator import columns
from services.tests.coordinator.running_server import RunningServer, settings_for

#: Threads that are there before each step, as long as they last.
_CROWD = (1, 1, 70, 70, 40, 1, 0, 200, 200, 33)


def _spec() -> spec_pb2.DesignSpec:
    spec = small_joint_spec(edition=2, simulated_seconds=2, steps=60, steps_per_epoch=20)
    spec.search.follow_workers = True
    return spec


def _threads(step: int) -> int:
    return _CROWD[min(step, len(_CROWD) - 1)]


def _go_on(designer: Designer, heard: bool = True) -> list[bytes]:
    """Makes all steps; the checkpoint before each. Who hears nothing is told of others."""
    checkpoints = []
    while designer.finished is None:
        checkpoints.append(designer.checkpoint())
        designer.hear_of_workers(_threads(designer.steps) if heard else 7)
        request = designer.next_request()
        if request is not None:
            designer.receive(columns.evaluate_columns(request))
    return checkpoints


class Crowd:
    """A SharedEvaluator of one thread that says that there are others."""

    def __init__(self) -> None:
        self._inner = ThreadPoolEvaluator(1)
        self._step = 0

    async def evaluate(
        self,
        share: Share,
        request: evaluation_pb2.EvaluationRequest,
        on_progress: OnProgress | None = None,
    ) -> Evaluation:
        self._step += 1
        return await self._inner.evaluate(share, request, on_progress)

    def status(self) -> EvaluatorStatus:
        return replace(self._inner.status(), threads=_threads(self._step))

    def worker_lines(self, job_id: str) -> list[WorkerLine]:
        return self._inner.worker_lines(job_id)

    async def close(self) -> None:
        await self._inner.close()


def test_steps_are_as_wide_as_there_are_threads_and_end_where_something_is_due() -> None:
    designer, widths = Designer(_spec()), []
    while designer.finished is None:
        designer.hear_of_workers(1000)
        request = designer.next_request()
        if request is None:
            continue
        is_climb = request.candidates[0].HasField("perturbation")
        widths += [len(specimen_keys(request))] if is_climb else []
        designer.receive(columns.evaluate_columns(request))
    assert max(widths) > 64
    assert len(widths) < 30
    assert len(designer.epochs) == 3, "after what counts as 20, 40 and 60 steps"
    assert designer.finished == progress_pb2.STOP_REASON_SCHEDULE_COMPLETE


def test_a_schedule_makes_the_same_design_and_so_does_every_checkpoint() -> None:
    spec = _spec()
    designer = Designer(spec)
    checkpoints = _go_on(designer)
    followed = parse_spec(to_yaml(designer.followed))
    assert list(followed.search.worker_schedule[:6]) == [0, 1, 2, 70, 4, 40]

    replayed = Designer(followed)
    _go_on(replayed, heard=False)
    assert replayed.steps == designer.steps
    assert table_bytes(replayed) == table_bytes(designer)
    assert list(replayed.epochs) == list(designer.epochs)

    usual = Designer(small_joint_spec(edition=2, simulated_seconds=2, steps=60, steps_per_epoch=20))
    _go_on(usual)
    assert usual.steps > designer.steps
    assert not usual.followed.search.worker_schedule
    for checkpoint in checkpoints[1::4]:
        resumed = Designer.resume(spec, checkpoint)
        _go_on(resumed)
        assert table_bytes(resumed) == table_bytes(designer)
        assert resumed.followed == designer.followed
    resumed = Designer.resume(followed, checkpoints[5])
    _go_on(resumed)
    assert table_bytes(resumed) == table_bytes(designer)


def test_a_design_in_one_process_is_replayed_there_and_through_a_coordinator(
    tmp_path: Path,
) -> None:
    DesignRun(_spec(), tmp_path / "followed", evaluator=Crowd).run()
    spec = load_spec(tmp_path / "followed" / "spec.yaml")
    assert 200 in spec.search.worker_schedule
    table = (tmp_path / "followed" / "remycc.json").read_bytes()

    DesignRun(spec, tmp_path / "replayed", threads=2).run()
    assert (tmp_path / "replayed" / "remycc.json").read_bytes() == table
    assert load_spec(tmp_path / "replayed" / "spec.yaml") == spec

    with RunningServer(settings_for(tmp_path)) as server:
        client = server.client()
        job = client.submit(spec).id
        client.until_final(job)
        assert client.remycc(job) == table
        assert client.get(job).spec.search.worker_schedule == spec.search.worker_schedule


def test_a_job_of_a_coordinator_keeps_the_schedule_that_it_followed(tmp_path: Path) -> None:
    with RunningServer(settings_for(tmp_path)) as server:
        client = server.client()
        job = client.submit(_spec()).id
        client.until_final(job)
        spec, table = client.get(job).spec, client.remycc(job)
    assert len(spec.search.worker_schedule) >= 2
    DesignRun(spec, tmp_path / "replayed", threads=1).run()
    assert (tmp_path / "replayed" / "remycc.json").read_bytes() == table
