"""Tests designs whose steps follow the number of worker threads, and replays of them."""

from __future__ import annotations

from pathlib import Path

from library.tests.designer.recorded_design import specimen_keys, table_bytes
from library.tests.designer.small_joint_spec import small_joint_spec
from library.tests.driver.changing_evaluator import (
    ChangingEvaluator,
    following_spec,
    threads_before,
)
from remy_farm.designer import Designer
from remy_farm.driver.run import DesignRun
from remy_farm.specification import load_spec, parse_spec
from remy_farm.specification.writing import to_yaml
from remy_proto.v1 import progress_pb2
from remy_simulator import columns


def _finish(designer: Designer, follows: bool = True) -> list[bytes]:
    """Makes all remaining steps and returns the checkpoint before each.

    A replayed design is given another number of threads, which it must ignore.
    """
    checkpoints = []
    while designer.finished is None:
        checkpoints.append(designer.checkpoint())
        designer.set_worker_threads(threads_before(designer.steps) if follows else 7)
        request = designer.next_request()
        if request is not None:
            designer.receive(columns.evaluate_columns(request))
    return checkpoints


def test_steps_have_a_network_per_thread_but_do_not_skip_the_end_of_an_epoch() -> None:
    designer, widths = Designer(following_spec()), []
    while designer.finished is None:
        designer.set_worker_threads(1000)
        request = designer.next_request()
        if request is None:
            continue
        is_climb = request.candidates[0].HasField("perturbation")
        widths += [len(specimen_keys(request))] if is_climb else []
        designer.receive(columns.evaluate_columns(request))
    assert max(widths) > 64
    assert len(widths) < 30
    # The schedule has 60 steps, and epochs of 20.
    assert len(designer.epochs) == 3
    assert designer.finished == progress_pb2.STOP_REASON_SCHEDULE_COMPLETE


def test_replaying_or_resuming_a_design_has_the_same_result() -> None:
    spec = following_spec()
    designer = Designer(spec)
    checkpoints = _finish(designer)
    followed = parse_spec(to_yaml(designer.replayable_spec))
    assert list(followed.search.worker_schedule[:6]) == [0, 1, 2, 70, 4, 40]

    replayed = Designer(followed)
    _finish(replayed, follows=False)
    assert replayed.steps == designer.steps
    assert table_bytes(replayed) == table_bytes(designer)
    assert list(replayed.epochs) == list(designer.epochs)

    not_following = Designer(
        small_joint_spec(edition=2, simulated_seconds=2, steps=60, steps_per_epoch=20)
    )
    _finish(not_following)
    assert not_following.steps > designer.steps
    assert not not_following.replayable_spec.search.worker_schedule
    for checkpoint in checkpoints[1::4]:
        resumed = Designer.resume(spec, checkpoint)
        _finish(resumed)
        assert table_bytes(resumed) == table_bytes(designer)
        assert resumed.replayable_spec == designer.replayable_spec
    resumed = Designer.resume(followed, checkpoints[5])
    _finish(resumed)
    assert table_bytes(resumed) == table_bytes(designer)


def test_the_specification_that_a_run_writes_replays_its_design(tmp_path: Path) -> None:
    DesignRun(following_spec(), tmp_path / "followed", evaluator=ChangingEvaluator).run()
    spec = load_spec(tmp_path / "followed" / "spec.yaml")
    assert 200 in spec.search.worker_schedule
    table = (tmp_path / "followed" / "remycc.json").read_bytes()

    DesignRun(spec, tmp_path / "replayed", threads=2).run()
    assert (tmp_path / "replayed" / "remycc.json").read_bytes() == table
    assert load_spec(tmp_path / "replayed" / "spec.yaml") == spec
