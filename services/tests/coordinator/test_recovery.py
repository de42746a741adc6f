"""Coordinators that end, and those that go on where they ended."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_services.coordinator.instrumentation import Instrumentation
from remy_services.coordinator.server import ServerSettings
from remy_services.jobs.states import FAILED, PAUSED, PENDING, RECOVERING, RUNNING, SUCCEEDED
from remy_services.stores.contract import Commit
from services.tests.coordinator.embedded_design import embedded_design, without_clocks
from services.tests.coordinator.gates import Gate, GatedEvaluator, Switch, cut_by
from services.tests.coordinator.running_server import TIMEOUT_SECONDS, RunningServer, settings_for
from services.tests.jobs.records import new_record

_SPEC = small_joint_spec()


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    return settings_for(tmp_path)


@pytest.fixture
def database(tmp_path: Path) -> Callable[[str], None]:
    """Does something to the store's file, behind everybody's back."""

    def execute(statement: str) -> None:
        with sqlite3.connect(tmp_path / "farm.db", timeout=60) as connection:
            connection.execute(statement)

    return execute


class Crashing:
    """A server that does `steps` steps of a job, and then is cut off from its store and ended: all
    that a crash would leave is left."""

    def __init__(self, settings: ServerSettings, *, grace_seconds: float = 0.1) -> None:
        self.gate, self.switch = Gate(), Switch()
        self.server = RunningServer(
            replace(settings, grace_seconds=grace_seconds),
            Instrumentation(
                evaluator=lambda inner: GatedEvaluator(inner, self.gate), store=cut_by(self.switch)
            ),
        )

    def begin(self, steps: int) -> str:
        """The id of a job that has committed so many steps."""
        self.server.__enter__()
        client = self.server.client()
        job = client.submit(_SPEC, name="crash").id
        self.gate.let_pass(steps)
        client.until(job, lambda shown: shown.progress.step == steps)
        self.gate.wait_for()
        return job

    def crash(self) -> None:
        self.switch.is_cut = True
        self.server.stop()


def _states(history: list[job_pb2.JobEvent]) -> list[job_pb2.JobState]:
    return [each.state_changed.to for each in history if each.HasField("state_changed")]


def _check_history(history: list[job_pb2.JobEvent], expected: list[object]) -> None:
    """Without a gap or a repeat, and with the embedded design's progress."""
    assert [event.revision for event in history] == list(range(1, len(history) + 1))
    progress = [event.progress for event in history if event.HasField("progress")]
    assert [without_clocks(event) for event in progress] == expected


def test_an_orderly_end_costs_nothing(settings: ServerSettings, tmp_path: Path) -> None:
    table, events = embedded_design(_SPEC, tmp_path / "embedded")
    first = Crashing(settings, grace_seconds=TIMEOUT_SECONDS)
    job = first.begin(7)
    first.server.stop()

    with RunningServer(settings) as second:
        client = second.client()
        history = client.history(job)
        _check_history(history, list(events))
        assert _states(history)[3:] == [PENDING, job_pb2.JOB_STATE_SCHEDULING, RUNNING, SUCCEEDED]
        said = [each.state_changed.message for each in history]
        assert "the coordinator is shutting down" in said
        assert client.remycc(job) == table
        assert client.get(job).progress.recoveries == 0


def test_a_crash_costs_the_steps_since_the_last_commit(
    settings: ServerSettings, tmp_path: Path
) -> None:
    table, events = embedded_design(_SPEC, tmp_path / "embedded")
    first = Crashing(settings)
    job = first.begin(7)
    first.crash()

    with RunningServer(settings) as second:
        client = second.client()
        history = client.history(job)
        _check_history(history, list(events))
        assert _states(history)[3:] == [RECOVERING, RUNNING, SUCCEEDED]
        (recovered,) = [each.recovered for each in history if each.HasField("recovered")]
        assert recovered == job_pb2.Recovered(step=7, coordinator="here")
        assert client.remycc(job) == table
        finished = client.get(job)
        assert finished.progress.recoveries == 1
        assert finished.status_message == ""


def test_what_was_asked_for_before_a_crash_is_done_after_it(settings: ServerSettings) -> None:
    first = Crashing(settings)
    job = first.begin(3)
    # The run cannot do as it was asked: its store is cut off as soon as that was committed.
    handle = first.server.run(first.server.farm.catalogue.find(job))
    first.server.run(handle.change(lambda draft: draft.move(job_pb2.JOB_STATE_PAUSING)))
    first.crash()

    with RunningServer(settings) as second:
        assert second.client().get(job).state == PAUSED


def test_a_damaged_snapshot_is_told_of_and_the_one_before_is_used(
    settings: ServerSettings, database: Callable[[str], None], tmp_path: Path
) -> None:
    table, events = embedded_design(_SPEC, tmp_path / "embedded")
    first = Crashing(settings)
    job = first.begin(5)
    first.gate.let_pass(3)
    first.server.client().until(job, lambda shown: shown.progress.step == 8)
    first.gate.wait_for()
    first.crash()
    database(
        "UPDATE snapshots SET data = zeroblob(length(data)) "
        "WHERE revision = (SELECT max(revision) FROM snapshots)"
    )

    with RunningServer(settings) as second:
        client = second.client()
        history = client.history(job)
        # The steps that were lost are made again, and are not told again.
        _check_history(history, list(events))
        (refused,) = [each for each in history if each.HasField("snapshot_refused")]
        assert "is damaged: its content and its hash" in refused.snapshot_refused.why
        assert client.remycc(job) == table
        assert client.get(job).progress.step == events[-1].step


def test_a_job_without_any_snapshot_fails_and_says_why(
    settings: ServerSettings, database: Callable[[str], None]
) -> None:
    first = Crashing(settings)
    job = first.begin(5)
    first.crash()
    database("UPDATE snapshots SET data = zeroblob(length(data))")

    with RunningServer(settings) as second:
        failed = second.client().until_final(job)
        assert failed.state == FAILED
        assert failed.failure_reason == job_pb2.FAILURE_REASON_SNAPSHOTS_LOST
        assert "is damaged" in failed.status_message


def test_a_snapshot_of_another_version_is_not_guessed_at(
    settings: ServerSettings, database: Callable[[str], None], tmp_path: Path
) -> None:
    table, _ = embedded_design(_SPEC, tmp_path / "embedded")
    first = Crashing(settings)
    job = first.begin(5)
    first.crash()
    database("UPDATE snapshots SET schema_version = 7")

    with RunningServer(settings) as second:
        client = second.client()
        failed = client.until_final(job)
        assert failed.failure_reason == job_pb2.FAILURE_REASON_OTHER_VERSION
        assert "schema version 7" in failed.status_message
        # With a program that can read it, the job goes on.
        database("UPDATE snapshots SET schema_version = 1")
        client.call("ResumeJob", messages.ResumeJobRequest(job=job))
        client.until_state(job, SUCCEEDED)
        assert client.remycc(job) == table


def test_of_two_coordinators_exactly_one_makes_progress(
    settings: ServerSettings, tmp_path: Path
) -> None:
    table, events = embedded_design(_SPEC, tmp_path / "embedded")
    old = Crashing(settings)
    job = old.begin(5)
    with RunningServer(settings) as new:
        # The old one is still at work, and cannot commit what it does.
        old.gate.open()
        client = new.client()
        _check_history(client.history(job), list(events))
        assert client.remycc(job) == table
        # It touches the job no more, and shows what the store says.
        old_client = old.server.client()
        shown = old_client.until_state(job, SUCCEEDED)
        assert shown.revision == client.get(job).revision
        assert old_client.history(job) == client.history(job)
        old.server.until(lambda: old.server.farm.scheduler.running == 0)
    old.server.stop()


def test_whoever_was_fenced_off_gives_up_its_step_at_once(settings: ServerSettings) -> None:
    old = Crashing(settings)
    old.begin(5)
    with RunningServer(settings):
        # The step's commit tells it. The next step would wait at the gate for ever.
        old.gate.let_pass(1)
        old.server.until(lambda: old.server.farm.scheduler.running == 0)
    old.server.stop()


def test_a_job_that_nobody_took_is_taken(settings: ServerSettings) -> None:
    """Its coordinator ended between storing it and taking it."""
    with RunningServer(settings) as first, RunningServer(settings) as second:
        store = second.farm.environment.store
        record = new_record()
        record.job.id = "orphan"
        record.job.spec.CopyFrom(_SPEC)
        store.create("orphan", Commit(record.SerializeToString(), [b""]))
        first.client().get("orphan")
        assert first.client().until_final("orphan").state == SUCCEEDED
