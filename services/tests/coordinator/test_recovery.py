"""Tests recovery of jobs after a shutdown or crash of their coordinator."""

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
from services.tests.coordinator.gates import Gate, GatedEvaluator, Switch, with_switch
from services.tests.coordinator.running_server import TIMEOUT_SECONDS, RunningServer, settings_for
from services.tests.jobs.records import new_record

_SPEC = small_joint_spec()


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    return settings_for(tmp_path)


@pytest.fixture
def database(tmp_path: Path) -> Callable[[str], None]:
    """Executes an SQL statement directly on the store's file."""

    def execute(statement: str) -> None:
        with sqlite3.connect(tmp_path / "farm.db", timeout=60) as connection:
            connection.execute(statement)

    return execute


class CrashingServer:
    """A server that is cut off from its store after some steps and then stopped, like a crash."""

    def __init__(self, settings: ServerSettings, *, grace_seconds: float = 0.1) -> None:
        self.gate, self.switch = Gate(), Switch()
        self.server = RunningServer(
            replace(settings, grace_seconds=grace_seconds),
            Instrumentation(
                evaluator=lambda inner: GatedEvaluator(inner, self.gate),
                store=with_switch(self.switch),
            ),
        )

    def begin(self, steps: int) -> str:
        """Submits a job, waits until it has committed `steps` steps, and returns its id."""
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
    """Asserts that the history is complete and has the embedded design's progress."""
    assert [event.revision for event in history] == list(range(1, len(history) + 1))
    progress = [event.progress for event in history if event.HasField("progress")]
    assert [without_clocks(event) for event in progress] == expected


def test_a_clean_shutdown_loses_no_steps(settings: ServerSettings, tmp_path: Path) -> None:
    table, events = embedded_design(_SPEC, tmp_path / "embedded")
    first = CrashingServer(settings, grace_seconds=TIMEOUT_SECONDS)
    job = first.begin(7)
    first.server.stop()

    with RunningServer(settings) as second:
        client = second.client()
        history = client.history(job)
        _check_history(history, list(events))
        assert _states(history)[3:] == [PENDING, job_pb2.JOB_STATE_SCHEDULING, RUNNING, SUCCEEDED]
        reasons = [each.state_changed.message for each in history]
        assert "the coordinator is shutting down" in reasons
        assert client.remycc(job) == table
        assert client.get(job).progress.recoveries == 0


def test_a_crash_loses_only_steps_since_the_last_commit(
    settings: ServerSettings, tmp_path: Path
) -> None:
    table, events = embedded_design(_SPEC, tmp_path / "embedded")
    first = CrashingServer(settings)
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


def test_requests_before_a_crash_are_executed_after_it(settings: ServerSettings) -> None:
    first = CrashingServer(settings)
    job = first.begin(3)
    # The store is cut off right after the request was committed, so the run cannot execute it.
    handle = first.server.run(first.server.farm.catalogue.find(job))
    first.server.run(handle.change(lambda draft: draft.move(job_pb2.JOB_STATE_PAUSING)))
    first.crash()

    with RunningServer(settings) as second:
        assert second.client().get(job).state == PAUSED


def test_a_damaged_snapshot_is_recorded_and_the_previous_one_used(
    settings: ServerSettings, database: Callable[[str], None], tmp_path: Path
) -> None:
    table, events = embedded_design(_SPEC, tmp_path / "embedded")
    first = CrashingServer(settings)
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
        # The lost steps are repeated, without repeated history events.
        _check_history(history, list(events))
        (refused,) = [each for each in history if each.HasField("snapshot_refused")]
        assert "is damaged: its content does not match its hash" in refused.snapshot_refused.why
        assert client.remycc(job) == table
        assert client.get(job).progress.step == events[-1].step


def test_a_job_without_snapshots_fails_with_a_reason(
    settings: ServerSettings, database: Callable[[str], None]
) -> None:
    first = CrashingServer(settings)
    job = first.begin(5)
    first.crash()
    database("UPDATE snapshots SET data = zeroblob(length(data))")

    with RunningServer(settings) as second:
        failed = second.client().until_final(job)
        assert failed.state == FAILED
        assert failed.failure_reason == job_pb2.FAILURE_REASON_SNAPSHOTS_LOST
        assert "is damaged" in failed.status_message


def test_a_snapshot_of_another_version_fails_the_job(
    settings: ServerSettings, database: Callable[[str], None], tmp_path: Path
) -> None:
    table, _ = embedded_design(_SPEC, tmp_path / "embedded")
    first = CrashingServer(settings)
    job = first.begin(5)
    first.crash()
    database("UPDATE snapshots SET schema_version = 7")

    with RunningServer(settings) as second:
        client = second.client()
        failed = client.until_final(job)
        assert failed.failure_reason == job_pb2.FAILURE_REASON_OTHER_VERSION
        assert "schema version 7" in failed.status_message
        # With a matching version, the job continues.
        database("UPDATE snapshots SET schema_version = 1")
        client.call("ResumeJob", messages.ResumeJobRequest(job=job))
        client.until_state(job, SUCCEEDED)
        assert client.remycc(job) == table


def test_only_one_of_two_coordinators_makes_progress(
    settings: ServerSettings, tmp_path: Path
) -> None:
    table, events = embedded_design(_SPEC, tmp_path / "embedded")
    old = CrashingServer(settings)
    job = old.begin(5)
    with RunningServer(settings) as new:
        # The old coordinator still runs the job, but its commits are fenced.
        old.gate.open()
        client = new.client()
        _check_history(client.history(job), list(events))
        assert client.remycc(job) == table
        # It has stopped the run, and shows the stored state.
        old_client = old.server.client()
        shown = old_client.until_state(job, SUCCEEDED)
        assert shown.revision == client.get(job).revision
        assert old_client.history(job) == client.history(job)
        old.server.until(lambda: old.server.farm.scheduler.running == 0)
    old.server.stop()


def test_a_fenced_coordinator_abandons_its_step(settings: ServerSettings) -> None:
    old = CrashingServer(settings)
    old.begin(5)
    with RunningServer(settings):
        # The step's commit is fenced. Otherwise the next step would wait at the gate forever.
        old.gate.let_pass(1)
        old.server.until(lambda: old.server.farm.scheduler.running == 0)
    old.server.stop()


def test_an_orphaned_job_is_acquired(settings: ServerSettings) -> None:
    """The coordinator stopped between creating and acquiring the job."""
    with RunningServer(settings) as first, RunningServer(settings) as second:
        store = second.farm.environment.store
        record = new_record()
        record.job.id = "orphan"
        record.job.spec.CopyFrom(_SPEC)
        store.create("orphan", Commit(record.SerializeToString(), [b""]))
        first.client().get("orphan")
        assert first.client().until_final("orphan").state == SUCCEEDED
