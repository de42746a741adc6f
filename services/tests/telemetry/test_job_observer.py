"""Tests logs of job events, and the CPU time of designers."""

from __future__ import annotations

import structlog
from structlog.testing import capture_logs

from remy_proto.v1 import evaluation_pb2, job_pb2, progress_pb2
from remy_services.telemetry.telemetry import Telemetry
from services.tests.telemetry.small_jobs import running_job


def test_a_state_change_is_logged_once() -> None:
    observer = Telemetry().observer()
    job = running_job()
    job.state = job_pb2.JOB_STATE_FAILED
    job.status_message = "the stored snapshots cannot be read"
    with capture_logs() as events:
        observer.state_changed(job, job_pb2.JOB_STATE_RECOVERING)
    (event,) = events
    assert event == {
        "event": "job changed its state",
        "log_level": "warning",
        "job_id": "j1",
        "job_name": "wide",
        "before": "RECOVERING",
        "state": "FAILED",
        "why": "the stored snapshots cannot be read",
    }


def test_logs_within_a_step_have_its_job_and_number() -> None:
    observer = Telemetry().observer()
    seen = []
    with observer.step(running_job(), evaluation_pb2.EvaluationRequest()):
        seen.append(structlog.contextvars.get_contextvars())
    assert seen == [{"job_id": "j1", "step": 41}]
    assert structlog.contextvars.get_contextvars() == {}


def test_only_milestones_of_a_search_are_logged() -> None:
    observer = Telemetry().observer()
    with capture_logs() as events:
        for event in (
            progress_pb2.ProgressEvent(step_finished=progress_pb2.StepFinished()),
            progress_pb2.ProgressEvent(rule_chosen=progress_pb2.RuleChosen()),
            progress_pb2.ProgressEvent(epoch_finished=progress_pb2.EpochFinished()),
            progress_pb2.ProgressEvent(design_finished=progress_pb2.DesignFinished()),
        ):
            observer.progressed(running_job(), event)
    assert [event["event"] for event in events] == ["epoch finished", "design finished"]


def test_cpu_time_of_designers_is_summed() -> None:
    telemetry = Telemetry()
    observer = telemetry.observer()
    observer.computed("j1", 0.25)
    observer.computed("j2", 0.5)
    assert telemetry.step_times.seconds()["search"] == 0.75
