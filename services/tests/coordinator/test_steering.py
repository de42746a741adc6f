"""Tests pause, resume, cancel, extend and delete; results stay identical."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from library.tests.designer.small_joint_spec import small_joint_spec
from library.tests.designer.small_spec import small_spec
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2, progress_pb2, spec_pb2
from remy_services.coordinator.instrumentation import Instrumentation
from remy_services.jobs.states import (
    CANCELLED,
    CANCELLING,
    PAUSED,
    PENDING,
    RUNNING,
    SCHEDULING,
    SUCCEEDED,
)
from services.tests.coordinator.embedded_design import embedded_design
from services.tests.coordinator.gates import Gate, GatedEvaluator, with_blocked_snapshots
from services.tests.coordinator.running_server import (
    Client,
    RunningServer,
    refusal,
    settings_for,
)

_SPEC = small_joint_spec()


@pytest.fixture
def gate() -> Gate:
    """Gate of the server's evaluations."""
    return Gate()


@pytest.fixture
def server(tmp_path: Path, gate: Gate) -> Iterator[RunningServer]:
    around = Instrumentation(evaluator=lambda inner: GatedEvaluator(inner, gate))
    with RunningServer(settings_for(tmp_path), around) as server:
        yield server


def _states(history: list[job_pb2.JobEvent]) -> list[str]:
    changes = [event.state_changed for event in history if event.HasField("state_changed")]
    return [job_pb2.JobState.Name(each.to).removeprefix("JOB_STATE_") for each in changes]


def _pause(client: Client, job: str) -> job_pb2.Job:
    paused: job_pb2.Job = client.call("PauseJob", messages.PauseJobRequest(job=job)).job
    return paused


def _resume(client: Client, job: str) -> job_pb2.Job:
    resumed: job_pb2.Job = client.call("ResumeJob", messages.ResumeJobRequest(job=job)).job
    return resumed


def _cancel(client: Client, job: str) -> job_pb2.Job:
    cancelled: job_pb2.Job = client.call("CancelJob", messages.CancelJobRequest(job=job)).job
    return cancelled


def _extend(client: Client, job: str, stop: spec_pb2.Stop) -> job_pb2.Job:
    request = messages.ExtendJobRequest(job=job, stop=stop)
    extended: job_pb2.Job = client.call("ExtendJob", request).job
    return extended


def test_pause_and_resume_do_not_change_the_result(
    client: Client, gate: Gate, tmp_path: Path
) -> None:
    table, _ = embedded_design(_SPEC, tmp_path / "embedded")
    job = client.submit(_SPEC)
    gate.let_pass(5)
    client.until(job.id, lambda shown: shown.progress.step == 5)
    gate.wait_for()

    _pause(client, job.id)
    paused = client.until_state(job.id, PAUSED)
    assert paused.progress.step == 5
    assert _pause(client, job.id).revision == paused.revision

    gate.open()
    _resume(client, job.id)
    history = client.history(job.id)
    assert _states(history) == [
        *("PENDING", "SCHEDULING", "RUNNING", "PAUSING", "PAUSED"),
        *("PENDING", "SCHEDULING", "RUNNING", "SUCCEEDED"),
    ]
    assert [event.revision for event in history] == list(range(1, len(history) + 1))
    assert client.remycc(job.id) == table
    assert client.get(job.id).progress.recoveries == 0


def test_a_cancelled_job_keeps_its_best_table(client: Client, gate: Gate) -> None:
    job = client.submit(_SPEC)
    gate.let_pass(12)
    client.until(job.id, lambda shown: shown.progress.epoch >= 1)
    gate.wait_for()

    _cancel(client, job.id)
    # The closing validation of the unfinished epoch.
    gate.open()
    cancelled = client.until_state(job.id, CANCELLED)
    assert cancelled.stop_reason == progress_pb2.STOP_REASON_CANCELLED
    assert client.remycc(job.id)
    assert _cancel(client, job.id).revision == cancelled.revision


def test_a_second_cancel_skips_the_closing_evaluation(client: Client, gate: Gate) -> None:
    job = client.submit(_SPEC)
    gate.let_pass(12)
    client.until(job.id, lambda shown: shown.progress.epoch >= 1)
    gate.wait_for()

    _cancel(client, job.id)
    gate.wait_for()
    _cancel(client, job.id)
    client.until_state(job.id, CANCELLED)


def test_a_cancelled_job_continues_identically_when_extended(
    client: Client, gate: Gate, tmp_path: Path
) -> None:
    spec = small_spec(epochs=2, simulated_seconds=1, epochs_per_split=1)
    table, _ = embedded_design(spec, tmp_path / "embedded")
    job = client.submit(spec)
    gate.let_pass(7)
    client.until(job.id, lambda shown: shown.progress.step == 7)
    gate.wait_for()
    _cancel(client, job.id)
    gate.open()
    client.until_state(job.id, CANCELLED)

    _extend(client, job.id, spec.stop)
    client.until_state(job.id, SUCCEEDED)
    assert client.remycc(job.id) == table


def test_a_finished_job_can_be_extended(client: Client, gate: Gate, tmp_path: Path) -> None:
    gate.open()
    longer = small_spec(epochs=3, simulated_seconds=1, epochs_per_split=1)
    table, events = embedded_design(longer, tmp_path / "embedded")
    job = client.submit(small_spec(epochs=1, simulated_seconds=1, epochs_per_split=1))
    client.until_state(job.id, SUCCEEDED)

    extended = _extend(client, job.id, spec_pb2.Stop(epochs=3))
    assert extended.spec.stop.epochs == 3
    client.until_state(job.id, SUCCEEDED)
    assert client.remycc(job.id) == table
    assert client.get(job.id).progress.step == events[-1].step


def test_a_running_job_can_be_extended(client: Client, gate: Gate, tmp_path: Path) -> None:
    longer = small_spec(epochs=2, simulated_seconds=1, epochs_per_split=1)
    table, _ = embedded_design(longer, tmp_path / "embedded")
    job = client.submit(small_spec(epochs=1, simulated_seconds=1, epochs_per_split=1))
    gate.let_pass(3)
    client.until(job.id, lambda shown: shown.progress.step == 3)
    gate.wait_for()

    assert _extend(client, job.id, longer.stop).state == RUNNING
    gate.open()
    assert client.until_final(job.id).state == SUCCEEDED
    assert client.remycc(job.id) == table
    history = client.history(job.id)
    assert _states(history) == ["PENDING", "SCHEDULING", "RUNNING", "SUCCEEDED"]
    assert sum(event.HasField("budget_changed") for event in history) == 1


def test_changing_the_priority_changes_nothing_else(client: Client, gate: Gate) -> None:
    job = client.submit(_SPEC, priority=1, queue_name="team")
    gate.let_pass(1)
    first = messages.ExtendJobRequest(job=job.id, priority=-5)
    changed = client.call("ExtendJob", first).job
    assert (changed.priority, changed.queue_name) == (-5, "team")
    assert changed.spec == job.spec
    gate.open()
    assert client.until_final(job.id).state == SUCCEEDED
    # A new priority does not restart a finished job.
    ended = client.call("ExtendJob", messages.ExtendJobRequest(job=job.id, priority=7)).job
    assert (ended.state, ended.priority) == (SUCCEEDED, 7)
    events = [each.budget_changed for each in client.history(job.id)]
    assert [each.priority for each in events if each.HasField("priority")] == [-5, 7]


def test_queue_names_follow_the_kubernetes_rules(client: Client) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        client.submit(_SPEC, queue_name="Team A")
    assert "queue_name is 'Team A', but must be" in refusal(caught.value)[1]


def test_an_extended_job_that_is_cancelled_before_it_runs_is_cancelled(tmp_path: Path) -> None:
    may_read = threading.Event()
    may_read.set()
    around = Instrumentation(store=with_blocked_snapshots(may_read))
    with RunningServer(settings_for(tmp_path), around) as server:
        client = server.client()
        job = client.submit(small_joint_spec(steps=3))
        client.until_state(job.id, SUCCEEDED)
        server.until(lambda: server.farm.scheduler.running == 0)
        table = client.remycc(job.id)

        may_read.clear()
        request = messages.ExtendJobRequest(job=job.id, joint_steps=1_000_000)
        client.call("ExtendJob", request)
        client.until_state(job.id, SCHEDULING)
        assert _cancel(client, job.id).state == CANCELLING
        may_read.set()
        cancelled = client.until_final(job.id)
        assert cancelled.state == CANCELLED
        assert cancelled.stop_reason == progress_pb2.STOP_REASON_CANCELLED
        assert client.remycc(job.id) == table


def test_a_wall_clock_budget_stops_a_job(client: Client, gate: Gate) -> None:
    gate.open()
    spec = small_joint_spec(steps=1_000_000, stop={"cpu_seconds": 0.01})
    job = client.submit(spec)
    finished = client.until_final(job.id)
    assert finished.stop_reason == progress_pb2.STOP_REASON_CPU_SECONDS
    assert finished.progress.cpu_seconds >= 0.01


def test_a_deleted_job_is_not_found(client: Client, gate: Gate) -> None:
    gate.open()
    job = client.submit(_SPEC, name="gone")
    client.until_final(job.id)
    client.call("DeleteJob", messages.DeleteJobRequest(job="gone"))
    for name in (job.id, "gone"):
        with pytest.raises(grpc.RpcError) as caught:
            client.get(name)
        assert refusal(caught.value) == (
            grpc.StatusCode.NOT_FOUND,
            f"there is no job '{name}'",
        )


@pytest.mark.parametrize(
    ("method", "request_type"),
    [
        ("PauseJob", messages.PauseJobRequest),
        ("ResumeJob", messages.ResumeJobRequest),
        ("CancelJob", messages.CancelJobRequest),
        ("ExtendJob", messages.ExtendJobRequest),
        ("DeleteJob", messages.DeleteJobRequest),
    ],
)
def test_operations_on_unknown_jobs_are_refused(
    client: Client, method: str, request_type: type[messages.PauseJobRequest]
) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        client.call(method, request_type(job="none"))
    assert refusal(caught.value)[0] == grpc.StatusCode.NOT_FOUND


def test_a_running_job_cannot_be_deleted(client: Client, gate: Gate) -> None:
    job = client.submit(_SPEC)
    gate.wait_for()
    with pytest.raises(grpc.RpcError) as caught:
        client.call("DeleteJob", messages.DeleteJobRequest(job=job.id))
    code, message = refusal(caught.value)
    assert code == grpc.StatusCode.FAILED_PRECONDITION
    assert (
        "in state RUNNING cannot be deleted; its state must be one of PAUSED, CANCELLED" in message
    )


def test_a_queued_job_can_be_paused_resumed_and_cancelled(client: Client, gate: Gate) -> None:
    first = client.submit(_SPEC, priority=1)
    gate.wait_for()
    paused = client.submit(_SPEC)
    _pause(client, paused.id)
    client.until_state(paused.id, PAUSED)
    assert _resume(client, paused.id).state in (PENDING, RUNNING)
    _cancel(client, paused.id)
    _cancel(client, paused.id)
    client.until_state(paused.id, CANCELLED)
    assert client.get(first.id).state == RUNNING
