"""Tests queueing and preemption of jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from library.tests.designer.small_joint_spec import small_joint_spec
from remy_proto.v1 import design_service_pb2 as messages
from remy_services.coordinator.instrumentation import Instrumentation
from remy_services.jobs.progress import QueueLimits
from remy_services.jobs.states import PENDING, RUNNING, SUCCEEDED
from services.tests.coordinator.embedded_design import embedded_design
from services.tests.coordinator.gates import Gate, GatedEvaluator
from services.tests.coordinator.running_server import Client, RunningServer, settings_for

_SPEC = small_joint_spec()


@pytest.fixture
def gate() -> Gate:
    """Gate of the server's evaluations."""
    return Gate()


@pytest.fixture
def limited(tmp_path: Path, gate: Gate) -> Iterator[Callable[[QueueLimits], Client]]:
    """A function that starts a coordinator with queue limits and returns a client."""
    with ExitStack() as stack:

        def start(limits: QueueLimits) -> Client:
            settings = settings_for(tmp_path)
            farm = replace(settings.farm, jobs=limits)
            around = Instrumentation(evaluator=lambda inner: GatedEvaluator(inner, gate))
            server = RunningServer(replace(settings, farm=farm), around)
            return stack.enter_context(server).client()

        yield start


def test_the_limit_of_running_jobs(limited: Callable[[QueueLimits], Client], gate: Gate) -> None:
    client = limited(QueueLimits(1, 100))
    first = client.submit(_SPEC)
    gate.wait_for()
    second = client.submit(_SPEC)
    waiting = client.get(second.id)
    assert waiting.state == PENDING
    assert waiting.status_message == "queued: the limit of 1 running jobs is reached"
    info = client.call("GetServerInfo", messages.GetServerInfoRequest())
    assert (info.running_jobs, info.waiting_jobs) == (1, 1)
    gate.open()
    client.until_final(second.id)
    assert client.get(first.id).end_time.ToNanoseconds() <= (
        client.get(second.id).end_time.ToNanoseconds()
    )


def test_the_limit_of_running_jobs_per_owner(
    limited: Callable[[QueueLimits], Client], gate: Gate
) -> None:
    client = limited(QueueLimits(100, 1))
    client.submit(_SPEC)
    gate.wait_for()
    waiting = client.get(client.submit(_SPEC).id)
    assert waiting.state == PENDING
    why = "queued: local has reached the limit of 1 running jobs per owner"
    assert waiting.status_message == why


def test_preemption_does_not_change_results(
    limited: Callable[[QueueLimits], Client], gate: Gate, tmp_path: Path
) -> None:
    table, _ = embedded_design(_SPEC, tmp_path / "embedded")
    client = limited(QueueLimits(1, 100))
    low = client.submit(_SPEC)
    gate.let_pass(5)
    client.until(low.id, lambda shown: shown.progress.step == 5)
    gate.wait_for()

    high = client.submit(_SPEC, priority=1)
    client.until_state(high.id, RUNNING)
    waiting = client.until_state(low.id, PENDING)
    assert waiting.progress.step == 5
    assert "preempted by a job of higher priority" in waiting.status_message
    gate.open()
    assert client.until_final(high.id).state == SUCCEEDED
    assert client.until_final(low.id).state == SUCCEEDED
    assert client.remycc(low.id) == client.remycc(high.id) == table
    steps_of_high = [position for position, job in enumerate(gate.passed) if job == high.id]
    assert all(job == high.id for job in gate.passed[steps_of_high[0] : steps_of_high[-1]])


def test_concurrent_jobs_have_the_results_of_single_ones(
    limited: Callable[[QueueLimits], Client], gate: Gate, tmp_path: Path
) -> None:
    gate.open()
    client = limited(QueueLimits(100, 100))
    specs = [small_joint_spec(seed=seed) for seed in range(1, 5)]
    tables = [
        embedded_design(spec, tmp_path / f"embedded-{number}")[0]
        for number, spec in enumerate(specs)
    ]
    jobs = [client.submit(spec, weight=1 + number) for number, spec in enumerate(specs)]
    for job, table in zip(jobs, tables, strict=True):
        client.until_state(job.id, SUCCEEDED)
        assert client.remycc(job.id) == table
