"""A store that is not there for a while, and evaluations that go wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status

import remy_simulator
from library.tests.designer.small_joint_spec import small_joint_spec
from remy_farm.evaluation.interface import ResultsDiffer, TaskQuarantined
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2
from remy_services.coordinator.checkpointing import RunSettings
from remy_services.coordinator.farm import FarmSettings
from remy_services.coordinator.instrumentation import Instrumentation
from remy_services.jobs.states import FAILED, RUNNING, SUCCEEDED
from services.tests.coordinator.embedded_design import embedded_design, without_clocks
from services.tests.coordinator.gates import Gate, GatedEvaluator, Switch, cut_by
from services.tests.coordinator.running_server import (
    TIMEOUT_SECONDS,
    Client,
    RunningServer,
    refusal,
    settings_for,
)

_SPEC = small_joint_spec()


@pytest.fixture
def switch() -> Switch:
    """Cuts the server off from its store."""
    return Switch()


@pytest.fixture
def gate() -> Gate:
    """What the server's evaluations wait at."""
    return Gate()


@pytest.fixture
def server(tmp_path: Path, switch: Switch, gate: Gate) -> Iterator[RunningServer]:
    around = Instrumentation(
        store=cut_by(switch), evaluator=lambda inner: GatedEvaluator(inner, gate)
    )
    with RunningServer(settings_for(tmp_path), around) as server:
        yield server
        switch.is_cut = False


@contextmanager
def limited_to(packets: int, folder: Path) -> Iterator[Client]:
    """A client of a server where one job may simulate so many packets."""
    farm = FarmSettings(runs=RunSettings(checkpoint_seconds=0.05, maximum_packets=packets))
    with RunningServer(replace(settings_for(folder), farm=farm)) as server:
        yield server.client()


class TestStoreAway:
    """The job waits, says why, and goes on afterwards."""

    def test_a_job_waits_says_why_and_goes_on(
        self, client: Client, switch: Switch, gate: Gate, tmp_path: Path
    ) -> None:
        table, events = embedded_design(_SPEC, tmp_path / "embedded")
        job = client.submit(_SPEC)
        gate.let_pass(3)
        client.until(job.id, lambda shown: shown.progress.step == 3)
        switch.is_cut = True
        gate.open()

        waiting = client.until(job.id, lambda shown: shown.status_message != "")
        assert waiting.status_message == "waits for the store: the cable is cut"
        assert waiting.state == RUNNING
        # What is not committed is not shown as done.
        assert waiting.progress.step == 3

        switch.is_cut = False
        history = client.history(job.id)
        assert [event.revision for event in history] == list(range(1, len(history) + 1))
        progress = [event.progress for event in history if event.HasField("progress")]
        assert [without_clocks(event) for event in progress] == events
        finished = client.get(job.id)
        assert (finished.state, finished.status_message) == (SUCCEEDED, "")
        assert client.remycc(job.id) == table

    def test_it_stops_working_until_it_can_keep_what_it_finds(
        self, switch: Switch, gate: Gate, tmp_path: Path
    ) -> None:
        farm = FarmSettings(runs=RunSettings(checkpoint_seconds=0))
        around = Instrumentation(
            store=cut_by(switch), evaluator=lambda inner: GatedEvaluator(inner, gate)
        )
        with RunningServer(settings_for(tmp_path, farm=farm), around) as server:
            client = server.client()
            job = client.submit(small_joint_spec(steps=1000))
            gate.let_pass(3)
            client.until(job.id, lambda shown: shown.progress.step == 3)
            gate.wait_for()
            switch.is_cut = True
            gate.open()
            client.until(job.id, lambda shown: shown.status_message != "")
            began = client.get(job.id).progress.wall_seconds
            client.until(job.id, lambda shown: shown.progress.wall_seconds > began + 1)
            # The step whose commit fails, and the one that was made beside it.
            assert len(gate.passed) <= 5
            switch.is_cut = False
            client.until(job.id, lambda shown: shown.progress.step > 10)

    def test_changes_are_refused_with_a_time_to_try_again(
        self, client: Client, switch: Switch, gate: Gate
    ) -> None:
        job = client.submit(_SPEC)
        gate.let_pass(1)
        gate.wait_for()
        switch.is_cut = True
        gate.let_pass(5)
        client.until(job.id, lambda shown: shown.status_message != "")
        for method, request in (
            ("PauseJob", messages.PauseJobRequest(job=job.id)),
            ("SubmitJob", messages.SubmitJobRequest(spec=_SPEC)),
        ):
            with pytest.raises(grpc.RpcError) as caught:
                client.call(method, request)
            code, message = refusal(caught.value)
            assert code == grpc.StatusCode.UNAVAILABLE
            assert message == "the store is not available: the cable is cut"
            status = rpc_status.from_call(caught.value)  # type: ignore[arg-type]
            assert status is not None
            info = error_details_pb2.RetryInfo()
            assert status.details[0].Unpack(info)
            assert info.retry_delay.ToMilliseconds() > 0
        switch.is_cut = False
        gate.open()
        # Nothing of what was refused has been done.
        assert client.until_final(job.id).state == SUCCEEDED
        assert len(client.call("ListJobs", messages.ListJobsRequest()).jobs) == 1

    def test_what_is_known_is_shown_all_the_same(self, client: Client, switch: Switch) -> None:
        job = client.submit(_SPEC)
        switch.is_cut = True
        assert client.get(job.id).id == job.id
        assert len(client.call("ListJobs", messages.ListJobsRequest()).jobs) == 1

    def test_alive_but_not_ready(self, server: RunningServer, switch: Switch) -> None:
        stub: Any = health_pb2_grpc.HealthStub(server.channel())

        def serves(service: str) -> bool:
            request = health_pb2.HealthCheckRequest(service=service)
            status = stub.Check(request, timeout=TIMEOUT_SECONDS).status
            return bool(status == health_pb2.HealthCheckResponse.SERVING)

        assert serves("liveness")
        assert serves("readiness")
        assert serves("")
        switch.is_cut = True
        server.until(lambda: not serves("readiness"))
        assert not serves("")
        assert serves("liveness")
        info = server.client().call("GetServerInfo", messages.GetServerInfoRequest())
        assert (info.store.available, info.store.trouble) == (False, "the cable is cut")
        switch.is_cut = False
        server.until(lambda: serves("readiness"))


class TestFailures:
    """A job that cannot go on says why, and may go on when that was put right."""

    @pytest.mark.parametrize(
        ("error", "reason", "message"),
        [
            (
                lambda: TaskQuarantined("task 3 has ended 3 workers"),
                job_pb2.FAILURE_REASON_TASK_QUARANTINED,
                "task 3 has ended 3 workers",
            ),
            (
                lambda: ResultsDiffer("workers a and b gave different results"),
                job_pb2.FAILURE_REASON_RESULTS_DIFFER,
                "workers a and b gave different results",
            ),
            (
                lambda: remy_simulator.InvalidRequest("the request makes no sense"),
                job_pb2.FAILURE_REASON_REQUEST_REFUSED,
                "the request makes no sense",
            ),
            (
                lambda: RuntimeError("a secret of ours"),
                job_pb2.FAILURE_REASON_INTERNAL,
                "internal error, id ",
            ),
        ],
    )
    def test_the_reason_is_kept_and_the_job_may_be_resumed(
        self,
        client: Client,
        gate: Gate,
        tmp_path: Path,
        error: Callable[[], Exception],
        reason: job_pb2.FailureReason,
        message: str,
    ) -> None:
        table, _ = embedded_design(_SPEC, tmp_path / "embedded")
        job = client.submit(_SPEC)
        gate.let_pass(4)
        client.until(job.id, lambda shown: shown.progress.step == 4)
        # Made here: an exception that was raised keeps what its frames held.
        gate.errors.append(error())
        gate.open()
        failed = client.until_final(job.id)
        assert failed.state == FAILED
        assert failed.failure_reason == reason
        assert failed.status_message.startswith(message)
        assert "secret" not in failed.status_message
        assert failed.progress.step == 4

        client.call("ResumeJob", messages.ResumeJobRequest(job=job.id))
        client.until_state(job.id, SUCCEEDED)
        assert client.remycc(job.id) == table

    def test_a_job_may_not_work_for_ever(self, tmp_path: Path) -> None:
        with limited_to(500_000, tmp_path) as client:
            failed = client.until_final(client.submit(small_joint_spec(steps=1000)).id)
            assert failed.failure_reason == job_pb2.FAILURE_REASON_WORK_LIMIT
            assert "at most 500000 are allowed for one job here" in failed.status_message
            # The step that would have been too much was not made; those before it are kept.
            assert failed.progress.step > 0
            assert 0 < failed.progress.simulated_packets <= 500_000

    def test_a_step_that_would_never_end_is_interrupted(self, tmp_path: Path) -> None:
        with limited_to(10_000, tmp_path) as client:
            failed = client.until_final(client.submit(small_joint_spec(simulated_seconds=1e6)).id)
            assert failed.failure_reason == job_pb2.FAILURE_REASON_WORK_LIMIT
            assert "more packets than the 10000 that are left to it" in failed.status_message
            assert failed.progress.step == 0
