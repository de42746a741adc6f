"""Tests temporary unavailability of the store, and failing evaluations."""

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
from services.tests.coordinator.gates import Gate, GatedEvaluator, Switch, with_switch
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
    """Switch that makes the server's store unavailable."""
    return Switch()


@pytest.fixture
def gate() -> Gate:
    """Gate of the server's evaluations."""
    return Gate()


@pytest.fixture
def server(tmp_path: Path, switch: Switch, gate: Gate) -> Iterator[RunningServer]:
    around = Instrumentation(
        store=with_switch(switch), evaluator=lambda inner: GatedEvaluator(inner, gate)
    )
    with RunningServer(settings_for(tmp_path), around) as server:
        yield server
        switch.is_cut = False


@contextmanager
def limited_to(packets: int, folder: Path) -> Iterator[Client]:
    """A client of a server that limits the packets of a job."""
    farm = FarmSettings(runs=RunSettings(checkpoint_seconds=0.05, maximum_packets=packets))
    with RunningServer(replace(settings_for(folder), farm=farm)) as server:
        yield server.client()


class TestStoreUnavailable:
    """Tests that jobs wait for the store, show why, and continue afterwards."""

    def test_a_job_waits_shows_why_and_continues(
        self, client: Client, switch: Switch, gate: Gate, tmp_path: Path
    ) -> None:
        table, events = embedded_design(_SPEC, tmp_path / "embedded")
        job = client.submit(_SPEC)
        gate.let_pass(3)
        client.until(job.id, lambda shown: shown.progress.step == 3)
        switch.is_cut = True
        gate.open()

        waiting = client.until(job.id, lambda shown: shown.status_message != "")
        assert waiting.status_message == "waits for the store: the connection is cut"
        assert waiting.state == RUNNING
        # Uncommitted steps are not shown as done.
        assert waiting.progress.step == 3

        switch.is_cut = False
        history = client.history(job.id)
        assert [event.revision for event in history] == list(range(1, len(history) + 1))
        progress = [event.progress for event in history if event.HasField("progress")]
        assert [without_clocks(event) for event in progress] == events
        finished = client.get(job.id)
        assert (finished.state, finished.status_message) == (SUCCEEDED, "")
        assert client.remycc(job.id) == table

    def test_a_run_stops_until_it_can_commit(
        self, switch: Switch, gate: Gate, tmp_path: Path
    ) -> None:
        farm = FarmSettings(runs=RunSettings(checkpoint_seconds=0))
        around = Instrumentation(
            store=with_switch(switch), evaluator=lambda inner: GatedEvaluator(inner, gate)
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
            # The step whose commit fails, and the one that ran concurrently.
            assert len(gate.passed) <= 5
            switch.is_cut = False
            client.until(job.id, lambda shown: shown.progress.step > 10)

    def test_changes_are_refused_with_a_retry_delay(
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
            assert message == "the store is not available: the connection is cut"
            status = rpc_status.from_call(caught.value)  # type: ignore[arg-type]
            assert status is not None
            info = error_details_pb2.RetryInfo()
            assert status.details[0].Unpack(info)
            assert info.retry_delay.ToMilliseconds() > 0
        switch.is_cut = False
        gate.open()
        # The refused changes had no effect.
        assert client.until_final(job.id).state == SUCCEEDED
        assert len(client.call("ListJobs", messages.ListJobsRequest()).jobs) == 1

    def test_reads_are_served_from_memory(self, client: Client, switch: Switch) -> None:
        job = client.submit(_SPEC)
        switch.is_cut = True
        assert client.get(job.id).id == job.id
        assert len(client.call("ListJobs", messages.ListJobsRequest()).jobs) == 1

    def test_the_server_is_alive_but_not_ready(self, server: RunningServer, switch: Switch) -> None:
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
        assert (info.store.available, info.store.trouble) == (False, "the connection is cut")
        switch.is_cut = False
        server.until(lambda: serves("readiness"))


class TestFailures:
    """Tests that failed jobs show a reason and can be resumed."""

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
                lambda: remy_simulator.InvalidRequest("the request is invalid"),
                job_pb2.FAILURE_REASON_REQUEST_REFUSED,
                "the request is invalid",
            ),
            (
                lambda: RuntimeError("a secret of ours"),
                job_pb2.FAILURE_REASON_INTERNAL,
                "internal error, id ",
            ),
        ],
    )
    def test_failures_have_a_reason_and_jobs_can_be_resumed(
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
        # Created here, because a raised exception would keep its frames alive.
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

    def test_the_packet_limit_fails_a_job(self, tmp_path: Path) -> None:
        with limited_to(500_000, tmp_path) as client:
            failed = client.until_final(client.submit(small_joint_spec(steps=1000)).id)
            assert failed.failure_reason == job_pb2.FAILURE_REASON_WORK_LIMIT
            assert "allows at most 500000 packets per job" in failed.status_message
            # The step that would exceed the limit is not made; earlier steps are kept.
            assert failed.progress.step > 0
            assert 0 < failed.progress.simulated_packets <= 500_000

    def test_an_endless_step_is_interrupted_at_the_limit(self, tmp_path: Path) -> None:
        with limited_to(10_000, tmp_path) as client:
            failed = client.until_final(client.submit(small_joint_spec(simulated_seconds=1e6)).id)
            assert failed.failure_reason == job_pb2.FAILURE_REASON_WORK_LIMIT
            assert "more packets than the 10000 that are left to it" in failed.status_message
            assert failed.progress.step == 0
