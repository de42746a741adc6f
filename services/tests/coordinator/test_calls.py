"""Tests calls that create jobs and read them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

import remy_simulator
from library.tests.designer.small_joint_spec import small_joint_spec
from remy_farm.designer import Designer
from remy_farm.remycc import RemyCC, from_json, read_remycc
from remy_farm.specification import to_yaml
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2, spec_pb2
from remy_services.jobs.requests import with_settings
from remy_services.jobs.states import SUCCEEDED
from services.tests.coordinator.running_server import Client, refusal
from tests.waiting import wait_until

_SPEC = small_joint_spec()


def _refused(client: Client, method: str, request: Any) -> tuple[grpc.StatusCode, str, list[Any]]:
    """Makes a call that must be refused; returns its code, message and details."""
    with pytest.raises(grpc.RpcError) as caught:
        client.call(method, request)
    status = rpc_status.from_call(caught.value)  # type: ignore[arg-type]
    details = []
    for packed in status.details if status is not None else ():
        for kind in (
            error_details_pb2.BadRequest,
            error_details_pb2.PreconditionFailure,
            error_details_pb2.ResourceInfo,
            error_details_pb2.QuotaFailure,
            error_details_pb2.RetryInfo,
        ):
            detail = kind()
            if packed.Unpack(detail):
                details.append(detail)
    return (*refusal(caught.value), details)


def _fields(details: list[Any]) -> list[str]:
    (bad_request,) = details
    return [violation.field for violation in bad_request.field_violations]


class TestSubmitting:
    def test_specifications_as_text_and_message_are_equal(self, client: Client) -> None:
        text = messages.SubmitJobRequest(spec_text=to_yaml(_SPEC))
        assert client.call("SubmitJob", text).job.spec == client.submit(_SPEC).spec == _SPEC

    def test_submitted_attributes_are_stored(self, client: Client) -> None:
        job = client.submit(_SPEC, name="mine", priority=-3, weight=2.5, campaign="sweep")
        shown = client.get(job.id)
        assert (shown.name, shown.priority, shown.weight, shown.campaign) == (
            *("mine", -3, 2.5),
            "sweep",
        )
        assert shown.owner == "local"

    def test_a_job_without_name_gets_the_name_of_its_specification(self, client: Client) -> None:
        assert client.submit(_SPEC).name == _SPEC.name

    def test_a_repeated_request_id_creates_one_job(self, client: Client) -> None:
        first = client.submit(_SPEC, client_request_id="once")
        second = client.submit(_SPEC, client_request_id="once")
        assert first.id == second.id
        assert len(client.call("ListJobs", messages.ListJobsRequest()).jobs) == 1

    def test_requests_without_id_always_create_jobs(self, client: Client) -> None:
        assert client.submit(_SPEC).id != client.submit(_SPEC).id

    def test_a_request_id_reused_for_another_request_is_refused(self, client: Client) -> None:
        client.submit(_SPEC, client_request_id="once")
        request = messages.SubmitJobRequest(spec=_SPEC, name="other", client_request_id="once")
        code, message, details = _refused(client, "SubmitJob", request)
        assert code == grpc.StatusCode.ALREADY_EXISTS
        assert "was used for a different request" in message
        assert [type(detail) for detail in details] == [error_details_pb2.ResourceInfo]

    def test_validate_only_creates_nothing(self, client: Client) -> None:
        job = client.submit(_SPEC, validate_only=True)
        assert job.id == ""
        assert job.spec == _SPEC
        assert not client.call("ListJobs", messages.ListJobsRequest()).jobs

    @pytest.mark.parametrize("validate_only", [False, True])
    def test_all_invalid_fields_are_named(self, client: Client, validate_only: bool) -> None:
        text = to_yaml(_SPEC).replace("delta: 1", "delta: -1").replace("steps: 24", "steps: 0")
        request = messages.SubmitJobRequest(spec_text=text, validate_only=validate_only)
        code, message, details = _refused(client, "SubmitJob", request)
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert _fields(details) == ["objective.delta", "search.joint.steps"]
        assert "objective.delta is -1, but must be" in message

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"spec": spec_pb2.DesignSpec()}, "network"),
            ({"spec_text": "{"}, "spec"),
            ({}, "spec"),
            ({"spec": _SPEC, "weight": 0}, "weight"),
            ({"spec": _SPEC, "weight": float("nan")}, "weight"),
            ({"spec": _SPEC, "weight": float("inf")}, "weight"),
            ({"spec": _SPEC, "name": "a\nb"}, "name"),
            ({"spec": _SPEC, "name": "x" * 201}, "name"),
            ({"spec": _SPEC, "campaign": "x" * 201}, "campaign"),
            ({"spec": _SPEC, "client_request_id": "x" * 201}, "client_request_id"),
        ],
    )
    def test_invalid_requests_are_refused(
        self, client: Client, changes: dict[str, Any], field: str
    ) -> None:
        request = messages.SubmitJobRequest(**changes)
        code, _, details = _refused(client, "SubmitJob", request)
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert field in _fields(details)


class TestNames:
    def test_jobs_are_found_by_id_or_name(self, client: Client) -> None:
        job = client.submit(_SPEC, name="only")
        assert client.get("only").id == client.get(job.id).id == job.id

    def test_ambiguous_names_list_the_ids(self, client: Client) -> None:
        ids = {client.submit(_SPEC, name="twin").id for _ in range(2)}
        code, message, _ = _refused(client, "GetJob", messages.GetJobRequest(job="twin"))
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert all(job_id in message for job_id in ids)


class TestListing:
    def test_pages_are_newest_first_without_specifications(self, client: Client) -> None:
        ids = [client.submit(_SPEC, name=f"job-{number}").id for number in range(5)]
        listed, token = [], ""
        while True:
            request = messages.ListJobsRequest(page_size=2, page_token=token)
            page = client.call("ListJobs", request)
            listed += page.jobs
            token = page.next_page_token
            if not token:
                break
        assert [job.id for job in listed] == ids[::-1]
        assert not any(job.HasField("spec") for job in listed)

    def test_filters_select_jobs(self, client: Client) -> None:
        for number in range(3):
            client.submit(_SPEC, name=f"job-{number}", campaign="odd" if number % 2 else "")
        request = messages.ListJobsRequest(campaign="odd", name_contains="job", owner="local")
        assert [job.name for job in client.call("ListJobs", request).jobs] == ["job-1"]
        assert not client.call("ListJobs", messages.ListJobsRequest(owner="nobody")).jobs

    @pytest.mark.parametrize(
        ("request_", "field"),
        [
            (messages.ListJobsRequest(page_token="x"), "page_token"),
            (messages.ListJobsRequest(page_size=-1), "page_size"),
            (messages.ListJobsRequest(page_size=1001), "page_size"),
        ],
    )
    def test_invalid_requests_are_refused(
        self, client: Client, request_: messages.ListJobsRequest, field: str
    ) -> None:
        code, _, details = _refused(client, "ListJobs", request_)
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert _fields(details) == [field]


class TestResults:
    @pytest.fixture
    def finished(self, client: Client) -> job_pb2.Job:
        """A finished job."""
        job = client.submit(_SPEC, name="finished")
        return client.until_final(job.id)

    def test_epochs_and_their_tables(self, client: Client, finished: job_pb2.Job) -> None:
        response = client.call("ListEpochs", messages.ListEpochsRequest(job="finished"))
        epochs = response.epochs
        assert [each.record.epoch for each in epochs] == list(range(len(epochs)))
        assert len(epochs) == finished.progress.epoch > 1
        assert not any(each.HasField("table") for each in epochs)
        assert all(each.cpu_seconds > 0 for each in epochs)
        measured = [each.measured for each in epochs]
        assert all(0 < each.throughput_over_link_rate_median <= 1 for each in measured)
        assert all(each.delay_over_rtt_median >= 1 for each in measured)
        assert all(each.HasField("loss_mean") for each in measured)
        best = max(each.record.epoch for each in epochs if each.record.comparison.accepted)
        assert client.remycc("finished", epoch=best) == client.remycc("finished")

    def test_tables_as_json_and_dna_files(
        self, client: Client, finished: job_pb2.Job, tmp_path: Path
    ) -> None:
        tables = []
        for form, name in (
            (messages.REMY_CC_FORMAT_JSON, "a.json"),
            (messages.REMY_CC_FORMAT_DNA, "a.dna"),
        ):
            request = messages.GetRemyCCRequest(job=finished.id, format=form)
            response = client.call("GetRemyCC", request)
            assert response.sha256 == hashlib.sha256(response.content).digest()
            (tmp_path / name).write_bytes(response.content)
            tables.append(read_remycc(tmp_path / name).table)
            assert tables[-1].rule_count == response.rules
        assert tables[0] == tables[1]

    def test_scale_free_rules_cannot_be_a_dna_file(self, client: Client) -> None:
        spec = small_joint_spec(edition=2, signals="rtt_ratio", steps=2)
        job = client.until_final(client.submit(spec).id)
        request = messages.GetRemyCCRequest(job=job.id, format=messages.REMY_CC_FORMAT_DNA)
        code, message, details = _refused(client, "GetRemyCC", request)
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert "its rules are scale-free, but a .dna file can hold only absolute rules" in message
        assert _fields(details) == ["format"]

    def test_a_missing_epoch_is_not_found(self, client: Client, finished: job_pb2.Job) -> None:
        request = messages.GetRemyCCRequest(job=finished.id, epoch=99)
        code, message, _ = _refused(client, "GetRemyCC", request)
        assert code == grpc.StatusCode.NOT_FOUND
        assert f"has no epoch 99; it has completed {finished.progress.epoch} epochs" in message

    def test_comparison_lists_differing_settings(
        self, client: Client, finished: job_pb2.Job
    ) -> None:
        other = client.submit(with_settings(_SPEC, ["objective.delta=10"]))
        request = messages.CompareJobsRequest(jobs=[finished.id, other.id])
        response = client.call("CompareJobs", request)
        assert [job.id for job in response.jobs] == [finished.id, other.id]
        (difference,) = response.differences
        assert difference.path == "objective.delta"
        assert list(difference.values) == ["1", "10"]

    @pytest.mark.parametrize("count", [0, 101])
    def test_the_number_of_compared_jobs_is_limited(
        self, client: Client, finished: job_pb2.Job, count: int
    ) -> None:
        request = messages.CompareJobsRequest(jobs=[finished.id] * count)
        code, _, details = _refused(client, "CompareJobs", request)
        assert code == grpc.StatusCode.INVALID_ARGUMENT
        assert _fields(details) == ["jobs"]


class TestForking:
    def test_a_fork_starts_from_the_table_of_an_epoch(self, client: Client) -> None:
        origin = client.until_final(client.submit(_SPEC, name="origin", campaign="c").id)
        request = messages.ForkJobRequest(
            job="origin", epoch=1, name="fork", settings=["objective.delta=10"], priority=4
        )
        fork = client.call("ForkJob", request).job
        assert fork.fork == job_pb2.ForkOrigin(job_id=origin.id, epoch=1)
        assert (fork.name, fork.priority, fork.campaign) == ("fork", 4, "c")
        assert fork.spec.objective.delta == 10
        assert client.until_final(fork.id).state == SUCCEEDED

        # Runs the same design in-process.
        table = _table(client, "origin", epoch=1)
        designer = Designer(fork.spec, first_table=table)
        while (step := designer.next_request()) is not None:
            designer.receive(remy_simulator.evaluate_columns(step))
        assert _table(client, "fork") == designer.table

    def test_a_repeated_fork_request_creates_one_job(self, client: Client) -> None:
        client.until_final(client.submit(_SPEC, name="origin").id)
        request = messages.ForkJobRequest(job="origin", client_request_id="fork")
        first, second = (client.call("ForkJob", request).job for _ in range(2))
        assert first.id == second.id
        # The request is still unambiguous, although two jobs now have the name.
        assert first.name == "origin"

    @pytest.mark.parametrize(
        ("changes", "code", "field"),
        [
            ({"settings": ["objective.delta=-1"]}, grpc.StatusCode.INVALID_ARGUMENT, True),
            ({"settings": ["nothing"]}, grpc.StatusCode.INVALID_ARGUMENT, True),
            ({"settings": ["signals=[rec_ewma]"]}, grpc.StatusCode.INVALID_ARGUMENT, True),
            ({"epoch": 99}, grpc.StatusCode.NOT_FOUND, False),
        ],
    )
    def test_invalid_forks_are_refused(
        self, client: Client, changes: dict[str, Any], code: grpc.StatusCode, field: bool
    ) -> None:
        client.until_final(client.submit(_SPEC, name="origin").id)
        request = messages.ForkJobRequest(job="origin", **changes)
        refused, _, details = _refused(client, "ForkJob", request)
        assert refused == code
        assert isinstance(details[0], error_details_pb2.BadRequest) == field


def _table(client: Client, job: str, epoch: int | None = None) -> Any:
    """Returns a job's table."""
    return RemyCC.from_message(from_json(client.remycc(job, epoch))).table


def test_server_info(client: Client) -> None:
    client.until_final(client.submit(_SPEC).id)

    def get_info() -> messages.GetServerInfoResponse:
        info: messages.GetServerInfoResponse = client.call(
            "GetServerInfo", messages.GetServerInfoRequest()
        )
        return info

    info = get_info()
    assert info.coordinator == "here"
    assert (info.caller, info.role) == ("local", "admin")
    assert info.store.kind == "sqlite"
    assert info.store.durable
    assert info.store.available
    assert info.evaluators.kind == "local"
    assert len(info.simulator_digest) == len(info.scale_free_digest) == 64
    assert len(info.protocols_digest) == 64
    assert len(info.path_model_digest) == 64
    assert len(info.network_signals_digest) == 64
    # A run ends shortly after its job.
    wait_until(lambda: get_info().running_jobs == 0)
    assert get_info().waiting_jobs == 0
