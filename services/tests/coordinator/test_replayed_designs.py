"""Tests that worker schedules replay to the same design in a coordinator and in-process."""

from __future__ import annotations

from pathlib import Path

from library.tests.designer.small_joint_spec import small_joint_spec
from library.tests.driver.changing_evaluator import ChangingEvaluator, following_spec
from remy_farm.driver.run import DesignRun
from remy_farm.specification import load_spec
from remy_proto.v1 import job_pb2
from services.tests.coordinator.running_server import RunningServer, settings_for


def test_a_recorded_worker_schedule_is_replayed(tmp_path: Path) -> None:
    DesignRun(following_spec(), tmp_path / "followed", evaluator=ChangingEvaluator).run()
    spec = load_spec(tmp_path / "followed" / "spec.yaml")
    with RunningServer(settings_for(tmp_path)) as server:
        client = server.client()
        job = client.submit(spec).id
        client.until_final(job)
        assert client.remycc(job) == (tmp_path / "followed" / "remycc.json").read_bytes()
        assert client.get(job).spec.search.worker_schedule == spec.search.worker_schedule


def test_a_job_records_its_worker_schedule(tmp_path: Path) -> None:
    with RunningServer(settings_for(tmp_path)) as server:
        client = server.client()
        job = client.submit(following_spec()).id
        client.until_final(job)
        spec, table = client.get(job).spec, client.remycc(job)
    assert len(spec.search.worker_schedule) >= 2
    DesignRun(spec, tmp_path / "replayed", threads=1).run()
    assert (tmp_path / "replayed" / "remycc.json").read_bytes() == table


def test_several_steps_in_flight_give_the_same_design(tmp_path: Path) -> None:
    spec = small_joint_spec(edition=3, simulated_seconds=2, steps_in_flight=4)
    DesignRun(spec, tmp_path / "threads", threads=2).run()
    with RunningServer(settings_for(tmp_path)) as server:
        client = server.client()
        job = client.submit(spec).id
        assert client.until_final(job).state == job_pb2.JOB_STATE_SUCCEEDED
        assert client.remycc(job) == (tmp_path / "threads" / "remycc.json").read_bytes()
