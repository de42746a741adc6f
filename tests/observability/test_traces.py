"""Spans of steps and tasks reach a collector with the right parents, if tracing is enabled."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from benchmarks.programs import ROOT
from tests.observability.otlp_receiver import Receiver, otlp_receiver

_DEADLINE_SECONDS = 120


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with otlp_receiver() as receiver:
        yield receiver


def run(*arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.observability.traced_step", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=_DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_task_span_in_another_process_has_the_step_as_parent(receiver: Receiver) -> None:
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{receiver.address}"}
    parent = run("coordinator", **environment)
    run("worker", parent, **environment)
    (step,) = receiver.named("step")
    (task,) = receiver.named("task")
    assert step.service == "remy-farm-coordinator"
    assert task.service == "remy-farm-worker"
    assert task.trace_id == step.trace_id
    assert task.parent_id == step.span_id
    assert step.attributes == {
        "remy_farm.job_id": "j1",
        "remy_farm.step": 7,
        "remy_farm.candidates": 3,
        "remy_farm.specimens": 0,
    }
    assert task.attributes == {"remy_farm.job_id": "j1", "remy_farm.lease_id": 9}


@pytest.mark.parametrize("disabled", [False, True])
def test_tracing_is_off_by_default(receiver: Receiver, disabled: bool) -> None:
    environment = {"OTEL_SDK_DISABLED": "true"} if disabled else {}
    if disabled:
        environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://{receiver.address}"
    assert run("coordinator", **environment) == ""
    run("worker", "", **environment)
    assert receiver.spans == []


def test_task_of_an_untraced_step_is_not_traced(receiver: Receiver) -> None:
    run("worker", "", OTEL_EXPORTER_OTLP_ENDPOINT=f"http://{receiver.address}")
    assert receiver.spans == []
